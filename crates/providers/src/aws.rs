//! Requests to Amazon's services: where their keys come from, and the signature that proves them.

mod credentials;
mod profile;
mod sign;

pub use credentials::AwsCredentials;
pub(crate) use credentials::{AwsKeys, keys_in};
pub(crate) use profile::Profile;
pub(crate) use sign::sign;

/// The domain of the services in a region.
pub(crate) fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}
