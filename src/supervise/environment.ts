/** Places of tool chains and their packages: without them a project's own tests do not run. */
const toolChains = new Set(
  [
    'VIRTUAL_ENV PYTHONPATH PYENV_ROOT JAVA_HOME ANDROID_HOME SDKMAN_DIR CARGO_HOME RUSTUP_HOME GOPATH GOROOT DOTNET_ROOT',
    'VOLTA_HOME GEM_HOME GEM_PATH BUNDLE_PATH BUNDLE_GEMFILE BUNDLE_WITH BUNDLE_WITHOUT BUNDLE_APP_CONFIG',
    'PKG_CONFIG_PATH LD_LIBRARY_PATH CI',
  ]
    .join(' ')
    .split(' '),
);
const toolChainPrefixes = ['CONDA_', 'NVM_', 'FNM_'];
/** Variables that any program may need, none of which holds a token. Matched whole. */
const allowed = new Set([
  ...toolChains,
  ...[
    'PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TERM COLORTERM SSH_AUTH_SOCK',
    'http_proxy https_proxy no_proxy all_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY',
    'SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS',
  ]
    .join(' ')
    .split(' '),
]);
const allowedPrefixes = ['LC_', 'XDG_', ...toolChainPrefixes];
/** A tool chain's own token, e.g. `CONDA_TOKEN`. Bundler keeps passwords in `BUNDLE_<HOST>`: its variables are listed one by one. */
const secretName = /TOKEN|PASSWORD|PASSWD|SECRET|CREDENTIAL|API_?KEY/i;

/** Variables that Windows programs need to start. Names are in upper case: Windows ignores case. */
const allowedOnWindows = new Set(
  [
    'SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT TEMP TMP USERPROFILE HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA',
    'PROGRAMDATA PROGRAMFILES USERNAME USERDOMAIN COMPUTERNAME NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE OS',
  ]
    .join(' ')
    .split(' '),
);

/** Variables that `childEnvironment` adds to the allow-list. */
export interface ChildEnvironmentOptions {
  /** Names the user asked to hand on; ours (`ORATORIO_…`) are never handed on. */
  readonly pass?: readonly string[];
  /** Variables that are set unchanged, with any name. */
  readonly add?: Readonly<Record<string, string>>;
}

/** The environment of a child: an allow-list of `source`, so that an unexpected secret stays here (design §3). */
export function childEnvironment(
  source: Readonly<Record<string, string | undefined>>,
  { pass = [], add = {} }: ChildEnvironmentOptions = {},
): Record<string, string> {
  const passed = new Set(pass);
  const kept = Object.entries(source).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^oratorio_/i.test(entry[0]) && (passed.has(entry[0]) || isAllowed(entry[0])),
  );
  return { ...Object.fromEntries(kept), ...add };
}

/** Variables of tool chains, and the search path: they differ between two shells of one user. */
export function toolChainEnvironment(source: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const isOne = (name: string) =>
    name === 'PATH' || toolChains.has(name) || toolChainPrefixes.some((prefix) => name.startsWith(prefix));
  return Object.fromEntries(Object.entries(childEnvironment(source)).filter(([name]) => isOne(name)));
}

function isAllowed(name: string): boolean {
  if (allowed.has(name)) return true;
  if (allowedPrefixes.some((prefix) => name.startsWith(prefix))) return !secretName.test(name);
  return process.platform === 'win32' && (allowed.has(name.toUpperCase()) || allowedOnWindows.has(name.toUpperCase()));
}
