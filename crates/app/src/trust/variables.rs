//! Which variables of the user's environment a folder's file may name. Agreeing to a folder gives its file the variables that were
//! shown; keys of vendors, Polis's own variables and secrets of clouds only if the user's own configuration lists them too.

use polis_providers::vendors::VENDORS;

/// Prefixes of names that belong to clouds, and the parts that make such a name a secret.
const CLOUDS: &[&str] = &[
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "GCP_",
    "GCLOUD_",
    "CLOUDSDK_",
    "ALIBABA_",
    "ALICLOUD_",
    "ALIYUN_",
    "TENCENTCLOUD_",
    "HUAWEICLOUD_",
    "DIGITALOCEAN_",
    "CLOUDFLARE_",
    "HCLOUD_",
    "LINODE_",
    "ORACLE_",
    "OCI_",
    "IBMCLOUD_",
    "KUBE",
    "VAULT_",
    "SSH_",
];
const SECRETS: &[&str] = &["SECRET", "KEY", "TOKEN", "CREDENTIAL", "PASSWORD", "SAS", "CONNECTION", "CONFIG", "AUTH"];

/// Whether a variable is given to a folder's file only if the user's own configuration lists it.
pub(crate) fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_key = |key: &str| upper == key || upper.ends_with(&format!("_{key}"));
    let of_cloud = CLOUDS.iter().any(|cloud| upper.starts_with(cloud)) && SECRETS.iter().any(|part| upper.contains(part));
    upper.starts_with("POLIS_") || of_cloud || VENDORS.iter().flat_map(|vendor| vendor.key_variables()).any(is_key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "OPENAI_API_KEY",
            "WORK_OPENAI_API_KEY",
            "GOOGLE_API_KEY",
            "POLIS_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AZURE_CLIENT_SECRET",
            "KUBECONFIG",
            "SSH_AUTH_SOCK",
            "VAULT_TOKEN",
            "aws_secret_access_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["GITHUB_TOKEN", "HOME", "AWS_REGION", "MY_KEY", "GOOGLE_CLOUD_PROJECT"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
