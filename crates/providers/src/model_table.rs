//! What is known about models by name: a table of ours, lines of the user's, and what vendors say about their models.

use std::collections::BTreeMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use polis_ports::{Capabilities, Effort, ModelSettings, VendorTool};
use serde::{Deserialize, Deserializer, de};

use crate::Price;
use crate::names_table::NamesTable;
use crate::prices::MAX_PRICE;

static BUILT_IN: LazyLock<NamesTable<ModelLine>> = LazyLock::new(|| {
    let lines: BTreeMap<_, _> = toml::from_str(include_str!("models.toml")).expect("our own table is read by a test");
    lines.into()
});

/// One line: what the models of a name can do and cost, and how they are called.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelLine {
    /// What they can do.
    pub capabilities: Capabilities,
    /// What they cost.
    pub price: Option<Price>,
    /// What the tools that their vendor runs cost, in US dollars for a thousand uses.
    pub vendor_tools: Option<BTreeMap<VendorTool, f64>>,
    /// How they are called, where nothing else is said.
    pub settings: ModelSettings,
}

impl<'de> Deserialize<'de> for ModelLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn part<T: de::DeserializeOwned, E: de::Error>(table: &mut toml::Table, name: &str) -> Result<Option<T>, E> {
            let read = |value: toml::Value| value.try_into().map_err(|error: toml::de::Error| E::custom(error.message()));
            table.remove(name).map(read).transpose()
        }
        let mut table = toml::Table::deserialize(deserializer)?;
        let price = part(&mut table, "price")?;
        let settings: ModelSettings = part(&mut table, "settings")?.unwrap_or_default();
        settings.check().map_err(de::Error::custom)?;
        let vendor_tools: Option<BTreeMap<VendorTool, f64>> = part(&mut table, "vendor_tools")?;
        if vendor_tools.iter().flatten().any(|(_, price)| !(0.0..=MAX_PRICE).contains(price)) {
            return Err(de::Error::custom(format!("a price is a number from 0 to {MAX_PRICE}")));
        }
        let rest = toml::Value::Table(table).try_into();
        let mut capabilities: Capabilities = rest.map_err(|error: toml::de::Error| de::Error::custom(error.message()))?;
        capabilities.vendor_tools = vendor_tools.as_ref().map(|tools| tools.keys().copied().collect());
        Ok(Self { capabilities, price, vendor_tools, settings })
    }
}

/// Everything that is known about models.
#[derive(Debug, Default)]
pub(crate) struct ModelTable {
    /// The lines of the user's configuration.
    own: NamesTable<ModelLine>,
    /// How all models are called.
    settings: ModelSettings,
    /// What vendors said about their models, by `vendor/name`.
    listed: RwLock<BTreeMap<String, Capabilities>>,
}

impl ModelTable {
    /// The same with these lines and settings of the user's.
    pub(crate) fn with_lines(&self, own: BTreeMap<String, ModelLine>, settings: ModelSettings) -> Self {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self { own: own.into(), settings, listed: RwLock::new(listed) }
    }

    /// What a model can do: as the user says, else as its vendor says, else as our table says.
    pub(crate) fn capabilities(&self, model: &str) -> Capabilities {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner).get(model).cloned();
        let lines = self.own.matches(model).map(|line| &line.capabilities);
        let built_in = BUILT_IN.matches(model).map(|line| &line.capabilities);
        lines.chain(listed.as_ref()).chain(built_in).fold(Capabilities::default(), Capabilities::over)
    }

    /// The context window as the user or our table says it: vendors may say another one tomorrow.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        let mut lines = self.own.matches(model).chain(BUILT_IN.matches(model));
        lines.find_map(|line| line.capabilities.window)
    }

    /// How a model is called, where a request says nothing.
    pub(crate) fn settings(&self, model: &str) -> ModelSettings {
        let lines = self.own.matches(model).map(|line| &line.settings);
        lines.chain([&self.settings]).fold(ModelSettings::default(), ModelSettings::over)
    }

    /// Whether the user says which efforts a model knows.
    pub(crate) fn says_efforts(&self, model: &str) -> bool {
        let efforts = self.own.matches(model).find_map(|line| line.capabilities.efforts.as_ref());
        efforts.is_some_and(|efforts| !efforts.is_empty())
    }

    /// What a model costs, if the user says so.
    pub(crate) fn price(&self, model: &str) -> Option<Price> {
        self.own.matches(model).find_map(|line| line.price)
    }

    /// What a thousand uses of a tool that the vendor runs cost; nothing where that is not known.
    pub(crate) fn vendor_tool_price(&self, model: &str, tool: VendorTool) -> f64 {
        let mut lines = self.own.matches(model).chain(BUILT_IN.matches(model));
        let tools = lines.find_map(|line| line.vendor_tools.as_ref());
        tools.and_then(|tools| tools.get(&tool)).copied().unwrap_or_default()
    }

    /// Keeps what a vendor says about a model.
    pub(crate) fn note(&self, model: String, capabilities: Capabilities) {
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        // Ollama lists `x:latest`, which people call `x`.
        if let Some(short) = model.strip_suffix(":latest") {
            listed.insert(short.to_owned(), capabilities.clone());
        }
        listed.insert(model, capabilities);
    }
}

/// The prices of our own table.
pub(crate) fn built_in_prices() -> BTreeMap<String, Price> {
    BUILT_IN.lines().iter().filter_map(|(name, line)| Some((name.clone(), line.price?))).collect()
}

/// The effort that a model knows and that is nearest to the asked one; none for a model that does not reason.
pub(crate) fn known_effort(asked: Effort, capabilities: &Capabilities) -> Option<Effort> {
    match &capabilities.efforts {
        Some(known) => asked.nearest(known),
        None => Some(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> BTreeMap<String, ModelLine> {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn our_own_table_can_be_read_and_its_prices_are_prices() {
        assert!(BUILT_IN.lines().len() > 100);
        assert!(BUILT_IN.lines().iter().all(|(_, line)| line.capabilities.window.is_none_or(|window| window >= 4096)));
        assert!(built_in_prices().values().all(|price| price.input >= 0.0 && price.output >= 0.0));
    }

    #[test]
    fn a_model_of_ollama_is_known_without_its_usual_tag() {
        let table = ModelTable::default();
        table.note("ollama/x:latest".to_owned(), Capabilities { window: Some(7), ..Capabilities::default() });
        assert_eq!(
            ["ollama/x", "ollama/x:latest", "ollama/y"].map(|name| table.capabilities(name).window),
            [Some(7), Some(7), None]
        );
    }

    #[test]
    fn of_each_field_the_longest_name_counts() {
        let table = ModelTable::default();
        let of = |model: &str| table.capabilities(model);
        assert_eq!((of("openai/gpt-5-mini").window, of("openai/gpt-5-mini").tools), (Some(400_000), Some(true)));
        assert_eq!(of("openai-responses/gpt-5-chat-latest").efforts.as_deref(), Some(&[][..]));
        assert_eq!(of("openrouter/anthropic/claude-opus-4.8").window, Some(1_000_000));
        assert_eq!((of("perplexity/sonar").tools, of("gemini/gemma-3-27b-it").tools), (Some(false), Some(false)));
        assert_eq!(of("gemini/gemini-2.5-flash-lite").window, Some(1_000_000));
        assert_eq!(of("groq/openai/gpt-oss-20b").window, Some(131_072));
        assert_eq!(of("ollama/qwen3"), Capabilities { image_urls: Some(false), ..Capabilities::default() });
        assert_eq!((of("vllm/openai/gpt-oss-20b").images, of("ollama/deepseek-r1:8b").images), (Some(false), Some(false)));
        assert_eq!(of("openrouter/deepseek/deepseek-chat-v3.1").pdf, Some(false));
        assert_eq!(of("nobody/m"), Capabilities::default());
    }

    #[test]
    fn the_users_lines_count_over_the_vendors_list_and_that_over_our_table() {
        let lines = own(r#"
            "ollama/qwen*" = { window = 9000, settings = { effort = "low", temperature = 0.1 } }
            "ollama/qwen3:4b" = { tools = false, price = { input = 1, output = 2 }, settings = { temperature = 0.9 } }
        "#);
        let mut everywhere = ModelSettings::default();
        everywhere.set("seed", "7").unwrap();
        everywhere.set("effort", "high").unwrap();
        let table = ModelTable::default().with_lines(lines, everywhere);
        let said = Capabilities { window: Some(5), tools: Some(true), images: Some(true), ..Capabilities::default() };
        table.note("ollama/qwen3:4b".to_owned(), said);
        let known = table.capabilities("ollama/qwen3:4b");
        assert_eq!((known.window, known.tools, known.images), (Some(9000), Some(false), Some(true)));
        table.note("ollama/gemma".to_owned(), Capabilities { window: Some(5), ..Capabilities::default() });
        assert_eq!((table.capabilities("ollama/gemma").window, table.window("ollama/gemma")), (Some(5), None));
        assert_eq!(table.window("ollama/qwen3:4b"), Some(9000));
        let mut want = ModelSettings::at_temperature(0.9);
        want.set("effort", "low").unwrap();
        want.set("seed", "7").unwrap();
        assert_eq!(table.settings("ollama/qwen3:4b"), want);
        assert_eq!(table.settings("openai/m").effort, Some(Effort::High));
        assert_eq!((table.price("ollama/qwen3:4b").map(|price| price.output), table.price("ollama/m")), (Some(2.0), None));
    }

    #[test]
    fn a_line_says_which_tools_the_vendor_runs_and_what_they_cost() {
        let table = ModelTable::default()
            .with_lines(own("\"anthropic/claude-opus-5\" = { vendor_tools = { web_search = 7 } }"), ModelSettings::default());
        let price = |model: &str| table.vendor_tool_price(model, VendorTool::WebSearch);
        assert_eq!((price("anthropic/claude-opus-5"), price("anthropic/claude-sonnet-5"), price("nobody/m")), (7.0, 10.0, 0.0));
        let has = |model: &str, tool| table.capabilities(model).has_vendor_tool(tool);
        assert!(has("anthropic/claude-sonnet-5", VendorTool::CodeExecution));
        assert!(!has("anthropic/claude-opus-5", VendorTool::CodeExecution), "the whole entry is replaced");
        assert!(!has("gemini/gemini-2.5-flash", VendorTool::WebSearch), "it cannot have our tools besides");
        assert!(has("gemini/gemini-3-flash-preview", VendorTool::WebFetch));
    }

    #[test]
    fn a_line_that_is_wrong_is_refused() {
        for wrong in [
            "a = { vendor_tools = { web = 1 } }",
            "a = { vendor_tools = { web_search = -1 } }",
            "a = { windows = 1 }",
            "a = { settings = { temperature = 3 } }",
            "a = { efforts = [\"much\"] }",
        ] {
            assert!(toml::from_str::<BTreeMap<String, ModelLine>>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_effort_is_moved_to_one_that_the_model_knows() {
        let table = ModelTable::default();
        let near = |model: &str, effort| known_effort(effort, &table.capabilities(model));
        assert_eq!(near("anthropic/claude-opus-4-6", Effort::Xhigh), Some(Effort::High));
        assert_eq!(near("openai/gpt-4o", Effort::High), None);
        assert_eq!(near("nobody/m", Effort::Xhigh), Some(Effort::Xhigh));
    }
}
