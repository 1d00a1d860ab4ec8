//! Why a TLS connection did not come about, in words: rustls names its errors as its source does.

use rustls::{CertificateError, Error, InvalidMessage};

/// What is said of a certificate that nobody trusted has signed; naming its authority helps against it.
const UNKNOWN_ISSUER: &str = "its certificate is from an issuer that is not trusted";

/// Whether `message` speaks of a certificate whose authority can be named with `ca_file`.
#[must_use]
pub fn is_about_issuer(message: &str) -> bool {
    message.contains(UNKNOWN_ISSUER)
}

/// What is said of the failure.
pub(super) fn message(error: &Error) -> String {
    let why = match error {
        // The first bytes of its answer belong to another protocol, most likely plain HTTP.
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => return "does not speak TLS".to_owned(),
        Error::PeerIncompatible(_) => return "offers no form of TLS that is accepted".to_owned(),
        Error::InvalidCertificate(fault) => certificate(fault),
        other => other.to_string(),
    };
    format!("the TLS connection cannot be trusted: {why}")
}

fn certificate(fault: &CertificateError) -> String {
    let words = match fault {
        CertificateError::UnknownIssuer => UNKNOWN_ISSUER,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet"
        }
        CertificateError::Revoked => "its certificate is revoked",
        CertificateError::BadEncoding => "its certificate cannot be read",
        CertificateError::BadSignature => "the signature of its certificate is wrong",
        // webpki's own error, which is known by its name alone.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority, which no server may use as its own"
        }
        other => return format!("its certificate is not accepted: {other}"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_faults_have_words() {
        let certificate = |fault| message(&Error::InvalidCertificate(fault));
        let trust = "the TLS connection cannot be trusted: its certificate ";
        for (fault, words) in [
            (CertificateError::UnknownIssuer, "is from an issuer that is not trusted"),
            (CertificateError::NotValidForName, "is for another name"),
            (CertificateError::Expired, "has expired"),
            (CertificateError::NotValidYet, "is not valid yet"),
            (CertificateError::Revoked, "is revoked"),
        ] {
            let is_issuer = fault == CertificateError::UnknownIssuer;
            let said = certificate(fault);
            assert_eq!(said, format!("{trust}{words}"));
            assert_eq!(is_about_issuer(&said), is_issuer, "{said}");
        }
        let plain = Error::InvalidMessage(InvalidMessage::InvalidContentType);
        assert_eq!(message(&plain), "does not speak TLS");
    }
}
