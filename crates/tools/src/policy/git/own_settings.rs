//! The settings that git writes into the configuration of a repository in its normal work. None of
//! them names a program or a file with more settings.

use std::collections::HashSet;

use super::config::{Setting, settings};

/// Whether two versions of a configuration differ only in settings that git itself writes. The
/// address of a remote that exists is not one of them: a push to a repository in the workspace
/// would run its hooks.
pub(crate) fn changes_only_gits_own(old: &[u8], new: &[u8]) -> bool {
    let is_remote = |setting: &Setting| setting.section == b"remote";
    let known = settings(old).into_iter().filter(is_remote).map(|remote| remote.subsection);
    let known: HashSet<_> = known.collect();
    let readdresses = |setting: &Setting| {
        is_remote(setting)
            && matches!(&*setting.key, b"url" | b"push" | b"pushurl")
            && known.contains(&setting.subsection)
    };
    let others = |text| {
        let mut others = settings(text);
        others.retain(|setting| !is_gits_own(setting) || readdresses(setting));
        others
    };
    others(old) == others(new)
}

fn is_gits_own(Setting { section, subsection, key, .. }: &Setting) -> bool {
    let has_subsection = !subsection.is_empty();
    match (&**section, has_subsection, &**key) {
        // `git push -u`, `git checkout --track`, `git branch --edit-description`.
        (b"branch", true, _) | (b"user", false, _) => true,
        // `git remote`, `git clone`. An address can't name a program unless a protocol is allowed.
        (b"remote", true, b"fetch" | b"url" | b"push" | b"pushurl" | b"tagopt") => true,
        (b"submodule", true, b"active" | b"url") | (b"submodule", false, b"active") => true,
        // `git init`.
        (
            b"core",
            false,
            b"repositoryformatversion"
            | b"filemode"
            | b"bare"
            | b"ignorecase"
            | b"precomposeunicode"
            | b"symlinks"
            | b"logallrefupdates",
        ) => true,
        (b"extensions", false, b"objectformat" | b"compatobjectformat" | b"refstorage") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_g2_only_settings_that_name_no_program_are_gits_own() {
        let base = b"[core]\n\tbare = false\n\teditor = vi\n[alias]\n\tx = y\n";
        let added = |text: &str| [base, text.as_bytes()].concat();
        let with_remote = added("[remote \"origin\"]\nurl = /x\n");
        for (address, is_own) in [
            ("[remote \"origin\"]\npushurl = y\n", false),
            ("[remote \"origin\"]\nurl = y\n", false),
            ("[remote \"origin\"]\nfetch = y\n", true),
            ("[remote \"other\"]\nurl = y\n", true),
        ] {
            let new = [&*with_remote, address.as_bytes()].concat();
            assert_eq!(changes_only_gits_own(&with_remote, &new), is_own, "{address}");
        }
        for own in [
            "",
            "# a comment\n",
            "[branch \"a.b\"]\n\tremote = origin\n\tmerge = refs/heads/a\n",
            "[remote \"origin\"]\nurl = /x\nfetch = +refs/heads/*:refs/remotes/origin/*\npush = x\n",
            "[user]\nname = A\nemail = a@example.org\n",
            "[CORE]\nBare = true\nlogAllRefUpdates = true",
            "[submodule]\nactive = .\n[submodule \"x\"]\nurl = ../x\nactive = true",
        ] {
            assert!(changes_only_gits_own(base, &added(own)), "{own}");
            let has_remote = own.contains("[remote");
            assert_eq!(changes_only_gits_own(&added(own), base), !has_remote, "{own}");
        }
        for other in [
            "[core]\nfsmonitor = ./x\n",
            "[core]\nhooksPath = x\n",
            "[core]\nsshCommand = x\n",
            "[core]\nworktree = x\n",
            "[core]\neditor = x\n",
            "[core \"x\"]\nbare = true\n",
            "[alias]\nx = !y\n",
            "[include]\npath = x\n",
            "[includeIf \"gitdir:x\"]\npath = x\n",
            "[filter \"x\"]\nclean = y\n",
            "[remote \"origin\"]\nuploadpack = x\n",
            "[remote \"origin\"]\nreceivepack = x\n",
            "[remote \"origin\"]\nproxy = x\n",
            "[remote \"origin\"]\nvcs = x\n",
            "[remote]\npushDefault = x\n",
            "[submodule \"x\"]\nupdate = !y\n",
            "[protocol \"ext\"]\nallow = always\n",
            "[url \"ext::x\"]\ninsteadOf = y\n",
            "[diff]\nexternal = x\n",
            "[credential]\nhelper = x\n",
            "[extensions]\nworktreeConfig = true\n",
            "[branch \"]\"] remote=x\n[core] fsmonitor = x\n",
            "[user] name = x \\\n y\n[core] fsmonitor=x\n",
        ] {
            assert!(!changes_only_gits_own(base, &added(other)), "{other}");
            assert!(!changes_only_gits_own(&added(other), base), "{other}");
        }
        // The order of the other settings counts, and so does their removal.
        assert!(!changes_only_gits_own(base, b"[alias]\nx = y\n[core]\neditor = vi\n"));
        assert!(!changes_only_gits_own(base, b"[core]\nbare = false\n"));
    }
}
