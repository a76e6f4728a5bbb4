//! `article_creation TOPIC`: writes an article from the files of this folder, and goes on where it was when it is run again.

mod progress;
mod wiring;

use std::process::ExitCode;

const USAGE: &str = "usage: article_creation TOPIC

Writes an article about TOPIC from the text files of this folder, to stdout; what happens is told on stderr. Run again with the same
TOPIC, it goes on where it was, or prints the article that is there.

  POLIS_MODEL=vendor/name       who answers; else the first vendor whose key is set, else rules that only quote your files
  ARTICLE_DATA=folder           where the society is kept; .article-data if not set
";

#[tokio::main]
async fn main() -> ExitCode {
    let topic = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    if ["--help", "-h"].contains(&topic.as_str()) {
        print(USAGE);
        return ExitCode::SUCCESS;
    }
    if topic.trim().is_empty() || topic.starts_with('-') {
        tell(USAGE);
        return ExitCode::from(2);
    }
    match wiring::article(topic.trim()).await {
        Ok(article) => {
            print(&article);
            ExitCode::SUCCESS
        }
        Err(error) => {
            tell(&format!("article_creation: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the article is what the program is for")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a program talks to its person")]
fn tell(text: &str) {
    eprintln!("{text}");
}
