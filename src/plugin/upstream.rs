//! How Envoy is told where the counter service is.

/// The upstream argument of Envoy's gRPC call: an `envoy.config.core.v3.GrpcService` that names the
/// cluster and, apart from it, the authority. With the cluster's name alone, Envoy would make that
/// the authority, and gRPC servers refuse the `|` in Istio's names.
///
/// Equal bytes for equal configurations, so that Envoy finds its client again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream(String);

/// Tag of `GrpcService.envoy_grpc` and of `EnvoyGrpc.cluster_name`: field 1, length-delimited.
const FIELD_1: u8 = 0x0a;
/// Tag of `EnvoyGrpc.authority`: field 2, length-delimited.
const FIELD_2: u8 = 0x12;

impl Upstream {
    /// Encodes it; none if a name is not ASCII or too long for a length of one byte, which a
    /// checked configuration never is. The argument of the call is text, and a length of more
    /// bytes is not valid UTF-8. Hence `envoy_grpc` stands there twice, with one field each:
    /// protobuf merges them.
    #[must_use]
    pub fn new(cluster: &str, authority: &str) -> Option<Self> {
        let mut bytes = Vec::new();
        for (tag, value) in [(FIELD_1, cluster), (FIELD_2, authority)] {
            let length = u8::try_from(value.len()).ok()?;
            let outer = length.checked_add(2).filter(u8::is_ascii)?;
            bytes.extend([FIELD_1, outer, tag, length]);
            bytes.extend(value.bytes());
        }
        let text = String::from_utf8(bytes).ok()?;
        text.is_ascii().then_some(Self(text))
    }

    /// The argument.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use headgate_core::rule::{MAX_AUTHORITY_BYTES, MAX_CLUSTER_BYTES};
    use prost::Message;

    use super::*;

    #[derive(Clone, PartialEq, Message)]
    struct GrpcService {
        #[prost(message, optional, tag = "1")]
        envoy_grpc: Option<EnvoyGrpc>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct EnvoyGrpc {
        #[prost(string, tag = "1")]
        cluster_name: String,
        #[prost(string, tag = "2")]
        authority: String,
    }

    fn decoded(cluster: &str, authority: &str) -> Option<(String, String)> {
        let upstream = Upstream::new(cluster, authority)?;
        let service = GrpcService::decode(upstream.as_str().as_bytes()).expect("protobuf");
        service
            .envoy_grpc
            .map(|grpc| (grpc.cluster_name, grpc.authority))
    }

    #[test]
    fn a_protobuf_reader_finds_both_names_at_every_length() {
        for cluster in [1, 2, 64, 124, MAX_CLUSTER_BYTES] {
            for authority in [1, 8, MAX_AUTHORITY_BYTES] {
                let names = ("c".repeat(cluster), "a".repeat(authority));
                assert_eq!(decoded(&names.0, &names.1), Some(names));
            }
        }
    }

    #[test]
    fn what_cannot_be_text_is_refused() {
        assert_eq!(Upstream::new(&"c".repeat(MAX_CLUSTER_BYTES + 1), "a"), None);
        assert_eq!(Upstream::new("c", &"a".repeat(300)), None);
        assert_eq!(Upstream::new("é", "a"), None);
    }
}
