//! The agents that ship with Polis. They are written like anybody's: on the engine's programming model, nothing else.

mod a2a_agent;
mod answer_check;
mod conversation;
mod converse;
mod cut_reply;
mod end_tools;
mod environment;
mod long_turn;
pub mod memory;
mod notes;
mod plan;
pub mod role;
mod role_file;
mod root;
mod skill;
pub mod society;
mod sources;
pub mod workflow;

pub use a2a_agent::A2aAgent;
pub use conversation::{ContextLimits, ContextUsage};
pub use converse::Converse;
pub use end_tools::HandOver;
pub use environment::{Environment, FileList, INSTRUCTIONS_FILE};
pub use plan::PlanTool;
pub use role::RoleAgent;
pub use role_file::{BadRoleFile, ROLES_FOLDER, read_role, role_file, role_files};
pub use root::{ROOT_PROMPT, root_role};
pub use skill::{ReadSkill, SHARED_SKILLS_FOLDERS, SKILL_FILE, SKILLS_FOLDER, Skill, SkillFault, Skills};
