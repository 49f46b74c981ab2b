/**
 * Places that a sandboxed command may see, write and create: the one table for bubblewrap and for macOS. It allows: a place without a row
 * is read-only, and below the home it is not there. `docs/tools.md` shows the same table.
 */

/** Access of a command to a place. The longest path that contains a file decides. */
export type Access =
  /** Reads and writes. */
  | 'write'
  /** Reads only. */
  | 'read'
  /** Sees an empty, read-only directory or an unreadable file. */
  | 'hidden'
  /** Sees the same as with `hidden`, but files of `read` rows below can be opened by their full path, not listed. */
  | 'closed'
  /** Missing directory that cannot be made: an empty, read-only one stands there while the sandbox is open. */
  | 'absentDirectory'
  /** Missing file that cannot be made: an empty, read-only one stands there while the sandbox is open. */
  | 'absentFile'
  /** Missing place that can be neither made nor read. */
  | 'absentHidden';

/** Order of strictness, for a path with two rows: the last one wins. */
export const strictness: readonly Access[] = [
  'write',
  'read',
  'absentFile',
  'absentDirectory',
  'absentHidden',
  'closed',
  'hidden',
];

/** A row of the rule: a name below some directory, and the access of commands. */
export interface RuleRow {
  readonly names: string;
  readonly access: Access;
  readonly reason: string;
}

const words = (names: string): readonly string[] => names.split(/\s+/).filter(Boolean);
const namesOf = (rows: readonly RuleRow[]): readonly string[] => rows.flatMap(({ names }) => words(names));

/** A git directory. Every other name is read-only, and the names of `gitAbsent` cannot be made. */
export const gitRule: readonly RuleRow[] = [
  {
    names: 'objects refs logs reftable packed-refs shallow lfs',
    access: 'write',
    reason: 'commits, branches and their history',
  },
  {
    names: 'index sharedindex next-index HEAD ORIG_HEAD FETCH_HEAD MERGE_HEAD COMMIT_EDITMSG',
    access: 'write',
    reason: 'the index, and every name in capitals: the state of one operation',
  },
  {
    names: 'rebase-merge rebase-apply sequencer rr-cache gc.pid gc.log addp-hunk-edit.diff',
    access: 'write',
    reason: 'operations in several steps',
  },
];

/** Names that git reads as configuration or runs: where one is missing, none can be made. */
export const gitAbsent: Readonly<
  Record<'directories' | 'files' | 'linkedDirectories' | 'linkedFiles', readonly string[]>
> = {
  directories: words('hooks info modules worktrees branches remotes'),
  files: words('config config.worktree objects/info/alternates'),
  // Git directory of a worktree: hooks and configuration are in its common directory.
  linkedDirectories: words('info modules'),
  linkedFiles: words('config.worktree'),
};

const writableNames = new Set(namesOf(gitRule));

/** Whether ordinary work writes this name of a git directory, lock files and temporary files included. */
export function isGitWork(name: string): boolean {
  const plain = name.replace(/\.lock$/, '');
  const [stem = ''] = /^[^._-]+/.exec(plain) ?? [];
  return (
    writableNames.has(plain) ||
    /^[A-Z][A-Z_]*$/.test(plain) ||
    (['index', 'sharedindex', 'shallow'].includes(stem) && plain !== stem) ||
    /^(?:next-index-|packed-refs\.)/.test(plain)
  );
}

/** Parts of the home that programs need. */
export const homeRule: readonly RuleRow[] = [
  {
    names: `.nvm .volta .fnm .local/share/fnm .nodenv .n .npm .npm-global .npm-packages .node_modules .yarn .config/yarn/global
      .pnpm-store .local/share/pnpm .bun .deno .cache/node .cache/node-gyp .cache/yarn .cache/pnpm .cache/deno .cache/typescript
      .cache/turbo .cache/prisma .cache/electron .cache/electron-builder .cache/Cypress .cache/ms-playwright .cache/puppeteer`,
    access: 'read',
    reason: 'JavaScript',
  },
  {
    names: `.pyenv .virtualenvs .local/share/virtualenvs .local/pipx .local/share/pipx .local/share/uv .local/share/hatch
      .local/share/pypoetry .rye .pixi .conda miniconda3 anaconda3 miniforge3 mambaforge micromamba .cache/pip .cache/uv .cache/pypoetry
      .cache/pipenv .cache/pdm .cache/hatch .cache/virtualenv .cache/pre-commit .cache/black .cache/ruff .cache/mypy
      .cache/huggingface/hub .cache/torch/hub .config/matplotlib .config/ruff .config/black .config/flake8`,
    access: 'read',
    reason: 'Python',
  },
  {
    names: `.cargo .rustup .config/rustfmt .cache/sccache go .go .gvm .goenv sdk .cache/go-build .cache/golangci-lint .cache/zig .zvm
      .ccache .cache/ccache .config/ccache .cache/clangd .config/clangd .conan .conan2/p .vcpkg .cache/bazel .cache/bazelisk .swiftpm
      .cache/org.swift.swiftpm .emscripten .platformio .wasmer .wasmtime .foundry/bin .svm`,
    access: 'read',
    reason: 'compiled languages',
  },
  {
    names: `.sdkman .jenv .jabba .m2/repository .m2/wrapper .gradle/caches .gradle/wrapper .gradle/jdks .gradle/native .ivy2/cache
      .ivy2/local .sbt .coursier .cache/coursier .konan Android/Sdk .android/debug.keystore .android/avd .dotnet .nuget/packages
      .local/share/NuGet`,
    access: 'read',
    reason: 'JVM, Android and .NET',
  },
  {
    names: `.rbenv .rvm .gem .local/share/gem .bundle perl5 .plenv .luarocks .composer/vendor .composer/cache .config/composer/vendor
      .cache/composer .phpenv .ghcup .cabal .local/state/cabal .stack .opam .elan .juliaup .julia .hex/packages .mix .asdf .kerl
      .cache/rebar3 .pub-cache flutter fvm .nix-profile .nix-defexpr .local/state/nix .linuxbrew .proto .krew/bin .tfenv
      .terraform.d/plugin-cache`,
    access: 'read',
    reason: 'other languages',
  },
  {
    names: `Library/Caches/pip Library/Caches/pypoetry Library/Caches/uv Library/Caches/Yarn Library/Caches/go-build
      Library/Caches/ms-playwright Library/Caches/Cypress Library/Caches/Homebrew Library/Caches/CocoaPods Library/Caches/deno
      Library/Caches/electron Library/Developer Library/Android/sdk Library/pnpm Library/Python Library/Fonts
      Library/Preferences/com.apple.dt.Xcode.plist`,
    access: 'read',
    reason: 'tool chains of macOS',
  },
  {
    names: `.tool-versions .config/mise .local/share/mise .local/state/mise .cache/mise .rtx .config/direnv .local/share/direnv
      .local/bin .local/lib .local/include .local/libexec bin`,
    access: 'read',
    reason: 'version managers and programs of the user',
  },
  {
    names: `.gitconfig .config/git/config .config/git/ignore .config/git/attributes .gitignore .gitignore_global .gitattributes
      .editorconfig .ripgreprc .fonts .local/share/fonts .config/fontconfig .cache/fontconfig`,
    access: 'read',
    reason: 'settings of git and of formatters, fonts',
  },
];

/** Keys and passwords in places that the rows above open, or that lie in the workspace when the home is in it. `VisibleHome` opens them. */
export const secretRule: readonly RuleRow[] = [
  {
    names: `.ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .git-credentials .config/git/credentials .config/gcloud
      .config/gh .vault-token .pgpass .my.cnf .password-store .config/rclone .config/sops .config/containers .local/share/containers
      .local/share/keyrings .mozilla .config/google-chrome .config/chromium .config/op .config/hub .config/doctl .config/helm
      .config/pip .config/uv .yarnrc.yml .bash_history .zsh_history .python_history .node_repl_history .psql_history .s3cfg .boto`,
    access: 'hidden',
    reason: 'keys, passwords and histories',
  },
  {
    names: `.cargo/credentials .cargo/credentials.toml .gem/credentials .local/share/gem/credentials .bundle/config
      .terraform.d/credentials.tfrc.json .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties .nuget/NuGet.Config
      .sbt/credentials .sbt/.credentials .ivy2/.credentials .pub-cache/credentials.json .cabal/config .stack/upload .hex/hex.config
      .composer/auth.json .config/composer/auth.json .platformio/.credentials .conan/.conan.db .julia/servers .volta/.npmrc
      .cache/huggingface/token .deno/credentials .rye/credentials`,
    access: 'hidden',
    reason: 'credentials of tool chains',
  },
];

/** Credentials of supervised agents. Nothing opens them. */
export const agentRule: readonly RuleRow[] = [
  {
    names: `.codex .claude .claude.json .config/claude .gemini .qwen .local/share/opencode .config/opencode .config/goose
      .local/share/goose .pi .cursor .config/cursor .copilot .config/github-copilot .kimi .vibe .mistral .amp .config/amp
      .local/share/amp .factory .augment .crush .config/crush .local/share/crush .openhands .cline .kiro .aider.conf.yml .hermes`,
    access: 'hidden',
    reason: 'credentials of supervised agents',
  },
];

export const homeNames = namesOf(homeRule);
export const secretNames = namesOf(secretRule);
export const agentNames = namesOf(agentRule);

/** Below `/run`, which is hidden while the network is denied: files of name resolution, and programs of NixOS. */
export const runNames = words(
  'systemd/resolve/resolv.conf systemd/resolve/stub-resolv.conf resolvconf/resolv.conf NetworkManager/resolv.conf current-system booted-system opengl-driver wrappers',
);
