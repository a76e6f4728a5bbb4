use super::*;

fn check(model: Option<&str>, set: &[(&str, &str)], want: Result<&str, &str>) {
    let nobody = ("OLLAMA_HOST", "127.0.0.1:9");
    let set = [set, &[nobody]].concat();
    let lookup = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let opened = runtime.block_on(open(model, &lookup));
    let got = opened.map(|models| models.default_name().to_string()).map_err(|error| error.to_string());
    assert_eq!(got.as_deref().map_err(|error| &**error), want, "{model:?} {set:?}");
}

#[test]
fn a_model_that_is_set_up_opens() {
    check(Some("openai/gpt-x"), &[("OPENAI_API_KEY", "k")], Ok("openai/gpt-x"));
    check(Some("openrouter/a/b"), &[("OPENROUTER_API_KEY", "k")], Ok("openrouter/a/b"));
    check(Some("qwen/qwen-max"), &[("DASHSCOPE_API_KEY", "k")], Ok("dashscope/qwen-max"));
    check(Some("deepseek"), &[("DEEPSEEK_API_KEY", "k")], Ok("deepseek/deepseek-flash"));
    check(Some("ollama/qwen3"), &[], Ok("ollama/qwen3"));
    check(Some("offline"), &[("OPENAI_API_KEY", "k")], Ok("offline"));
    check(Some("openai/m"), &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")], Ok("openai/m"));
    check(Some("openai-compatible/m"), &[("OPENAI_COMPATIBLE_BASE_URL", "http://h/v1")], Ok("openai-compatible/m"));
    check(Some("google/g"), &[("GOOGLE_API_KEY", "k")], Ok("gemini/g"));
    check(Some("glm/g"), &[("ZHIPUAI_BASE_URL", "http://h/v1")], Ok("zhipu/g"));
    check(Some("openai-responses"), &[("OPENAI_API_KEY", "k")], Ok("openai-responses/gpt-5-mini"));
    check(Some("openai-responses/m"), &[("OPENAI_BASE_URL", "http://h/v1")], Ok("openai-responses/m"));
    check(Some("llama.cpp/m"), &[("LLAMA_CPP_BASE_URL", "http://h/v1")], Ok("llamacpp/m"));
    check(Some("anthropic"), &[("ANTHROPIC_API_KEY", "k")], Ok("anthropic/claude-sonnet-4-6"));
    check(Some("hf/org/model"), &[("HF_TOKEN", "k")], Ok("huggingface/org/model"));
    let azure = [("AZURE_OPENAI_ENDPOINT", "https://n.openai.azure.com/"), ("AZURE_OPENAI_API_KEY", "k")];
    check(Some("azure/d"), &azure, Ok("azure/d"));
    check(Some("azure-responses/d"), &azure, Ok("azure-responses/d"));
    let aws = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")];
    check(Some("bedrock/amazon.nova-pro-v1:0"), &aws, Ok("bedrock/amazon.nova-pro-v1:0"));
    check(Some("bedrock/m"), &[("AWS_BEARER_TOKEN_BEDROCK", "k"), ("AWS_REGION", "eu-west-1")], Ok("bedrock/m"));
    let google = [("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file"), ("GOOGLE_CLOUD_PROJECT", "p")];
    check(Some("vertex/gemini-2.5-pro"), &google, Ok("vertex/gemini-2.5-pro"));
}

#[test]
fn without_a_model_the_first_vendor_with_a_key_is_taken_and_else_the_offline_model() {
    check(None, &[], Ok("offline"));
    check(Some(" "), &[("OPENAI_API_KEY", " ")], Ok("offline"));
    check(None, &[("GROQ_API_KEY", "k"), ("DEEPSEEK_API_KEY", "k")], Ok("deepseek/deepseek-flash"));
    check(None, &[("OPENAI_COMPATIBLE_API_KEY", "k")], Ok("offline"));
    // Many have this one for other purposes.
    check(None, &[("HF_TOKEN", "k")], Ok("offline"));
    let aws = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")];
    check(None, &aws, Ok("offline"));
    check(None, &[("GOOGLE_API_KEY", "k"), ("OLLAMA_API_KEY", "k")], Ok("gemini/gemini-3.6-flash"));
}

#[test]
fn what_is_missing_is_said_with_the_variable_to_set() {
    check(Some("openai/m"), &[], Err("openai needs a key; set OPENAI_API_KEY"));
    check(Some("ollama"), &[], Err("which model of ollama? write ollama/NAME"));
    check(Some("bedrock/m"), &[], Err("bedrock needs a region; set AWS_REGION, for example to us-east-1"));
    let nothing = [("AWS_REGION", "eu-west-1"), ("AWS_EC2_METADATA_DISABLED", "true")];
    check(
        Some("bedrock/m"),
        &nothing,
        Err(
            "bedrock needs credentials; set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile with keys in ~/.aws/credentials",
        ),
    );
    check(
        Some("openai-compatible/m"),
        &[],
        Err("openai-compatible needs an address; set OPENAI_COMPATIBLE_BASE_URL, for example to http://127.0.0.1:8080/v1"),
    );
    check(
        Some("openai/m"),
        &[("OPENAI_API_KEY", "a b")],
        Err(
            "OPENAI_API_KEY: the key is empty or contains characters that cannot be sent; copy it again, without spaces or line breaks inside",
        ),
    );
    check(
        Some("openai/m"),
        &[("OPENAI_BASE_URL", "here")],
        Err("OPENAI_BASE_URL: this is not the address of a model; write it like https://api.openai.com/v1"),
    );
    check(
        Some("gpt-4o"),
        &[],
        Err(
            "`gpt-4o` names no known vendor; write vendor/name with one of openai, openai-responses, anthropic, gemini, deepseek, dashscope, moonshot, zhipu, mistral, openrouter, groq, xai, together, fireworks, siliconflow, minimax, nvidia, cerebras, perplexity, azure, azure-responses, bedrock, vertex, xai-responses, github, huggingface, ollama, lmstudio, vllm, llamacpp, openai-compatible, offline",
        ),
    );
}

#[test]
fn every_usual_address_can_be_used_and_every_name_is_its_own() {
    let mut seen = std::collections::BTreeSet::new();
    for vendor in VENDORS {
        assert!(std::iter::once(&vendor.name).chain(vendor.aliases).all(|name| seen.insert(*name)), "{}", vendor.name);
        if vendor.base_url.is_some() {
            let key = |name: &str| (name == vendor.key_variable).then(|| "k".to_owned());
            let opened = Endpoint::new(vendor.name, vendor).open(&HttpClient::default(), &HttpOptions::default(), &key);
            assert!(opened.is_ok(), "{}", vendor.name);
        }
    }
}

#[test]
fn the_address_of_an_ollama_is_read_as_ollama_reads_it() {
    let cases = [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("box", "http://box:11434"),
        ("box:8000/", "http://box:8000"),
        ("https://box/ollama/", "https://box/ollama"),
    ];
    for (host, address) in cases {
        assert_eq!(ollama_address(host), address);
    }
}

#[test]
fn a_key_is_never_sent_over_plain_http_to_another_machine() {
    let key = ("OPENAI_API_KEY", "k");
    for far in ["http://example.org/v1", "HTTP://10.0.0.1/v1", "http://127.0.0.1.example.org/v1", "http://localhost@h/v1"] {
        let said = format!(
            "{far} (OPENAI_BASE_URL) is plain http, which would send the key in OPENAI_API_KEY unencrypted; use https, or unset the key"
        );
        check(Some("openai/m"), &[key, ("OPENAI_BASE_URL", far)], Err(&said));
    }
    for near in ["http://127.9.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1", "https://example.org/v1"] {
        check(Some("openai/m"), &[key, ("OPENAI_BASE_URL", near)], Ok("openai/m"));
    }
    check(Some("ollama/m"), &[("OLLAMA_BASE_URL", "http://box:11434")], Ok("ollama/m"));
    let with_key = [("OLLAMA_API_KEY", "k"), ("OLLAMA_BASE_URL", "http://box:11434")];
    let said = "http://box:11434 (OLLAMA_BASE_URL) is plain http, which would send the key in OLLAMA_API_KEY unencrypted; use https, or unset the key";
    check(Some("ollama/m"), &with_key, Err(said));
}

#[test]
fn the_addresses_of_a_vendor_are_known() {
    let vendor = |name: &str| VENDORS.iter().find(|vendor| vendor.name == name).unwrap();
    for (name, address, known) in [
        ("openai", "https://api.openai.com/v1", true),
        ("openai", "https://API.OPENAI.COM/other", true),
        ("openai", "https://api.openai.com.example.org/v1", false),
        ("openai", "https://api.openai.com@example.org/v1", false),
        ("moonshot", "https://api.moonshot.cn/v1", true),
        ("azure", "https://mine.openai.azure.com/openai/v1", true),
        ("azure", "https://openai.azure.com.example.org", false),
        ("ollama", "http://127.0.0.1:11434", true),
        ("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", true),
        ("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com.example.org", false),
        ("bedrock", "https://x.execute-api.us-east-1.amazonaws.com", false),
        ("bedrock", "https://bedrock-runtime.a.execute-api.us-east-1.amazonaws.com", false),
        ("vertex", "https://europe-west4-aiplatform.googleapis.com/v1", true),
        ("openai", "nonsense", false),
    ] {
        assert_eq!(vendor(name).is_known_address(address), known, "{name} {address}");
    }
}

#[test]
fn only_this_machine_is_asked_unasked() {
    let near = ["http://127.0.0.1:11434", "http://localhost/v1", "http://[::1]:1"];
    assert!(near.into_iter().all(is_loopback));
    let far = ["http://box:11434", "http://10.0.0.1", "https://127.0.0.1.example.com", "nonsense"];
    assert!(!far.into_iter().any(is_loopback));
}
