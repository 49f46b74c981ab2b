/**
 * Installs the system tools of the tests besides Node: bubblewrap, a browser, curl, iproute2, OpenSSH, Perl and PostgreSQL; for the
 * story on a container engine also the engine. On a Debian machine, as root, missing packages are installed; elsewhere a warning
 * names them, and the tests that need them fail.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * By package: names or paths of its program, the variable that names another one, and programs that do the same work more
 * slowly.
 */
const wanted = new Map([
  [
    'chromium-headless-shell',
    {
      programs: ['chromium-headless-shell', 'chrome-headless-shell'],
      variable: 'ORATORIO_TEST_BROWSER',
      substitutes: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    },
  ],
  ['bubblewrap', { programs: ['bwrap'] }],
  ['curl', { programs: ['curl'] }],
  ['iproute2', { programs: ['ip', '/usr/sbin/ip'] }],
  ['openssh-client', { programs: ['ssh', 'ssh-keygen'] }],
  ['openssh-server', { programs: ['sshd', '/usr/sbin/sshd'] }],
  ['perl', { programs: ['perl'] }],
  ['postgresql', { programs: ['postgres', '/usr/lib/postgresql/*/bin/postgres'], variable: 'ORATORIO_TEST_POSTGRES' }],
]);

/** Paths of the programs that a container engine of our own needs, by package. */
export const engineTools = new Map([
  ['docker.io', '/usr/sbin/dockerd'],
  ['iptables', '/usr/sbin/iptables'],
  ['iproute2', '/usr/sbin/ip'],
  ['openssl', '/usr/bin/openssl'],
  ['curl', '/usr/bin/curl'],
  ['git', '/usr/bin/git'],
]);

/** Paths of the programs that the tests on Podman need besides, by package. */
export const podmanTools = new Map([
  ['podman', '/usr/bin/podman'],
  ['uidmap', '/usr/bin/newuidmap'],
  ['catatonit', '/usr/bin/catatonit'],
  ['slirp4netns', '/usr/bin/slirp4netns'],
]);

const isInstalled = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
const isPresent = ({ programs, variable }) =>
  (variable !== undefined && process.env[variable]) || programs.some(isInstalled);
const isReplaceable = ({ substitutes = [] }) => substitutes.some(isInstalled);
const namesOf = (tools) => tools.map(([name]) => name);

/** Stands out among the lines of a long run. */
function warn(lines) {
  console.error(['', ...lines.map((line) => `✖ ${line}`), ''].join('\n'));
}

/** Installs missing packages where that needs no password, and warns of those that stay missing. */
export function ensureSystemTools() {
  ensure([]);
}

/** Installs the tools of a run with the story on a container engine; the story reports the missing ones of `engineTools`. */
export function ensureSystemToolsAndEngine() {
  ensure([...engineTools].filter(([, path]) => !existsSync(path)));
}

/** @param {readonly [string, unknown][]} others packages to install as well, without a warning */
function ensure(others) {
  // Where programs are not on the path of a shell, the tests search for them, and name the missing ones.
  if (process.platform !== 'linux') return;
  const missing = [...wanted].filter(([, tool]) => !isPresent(tool));
  const packages = [...new Set(namesOf([...missing, ...others]))];
  if (packages.length === 0) return;
  const failure = install(packages);
  const needed = missing.filter(([, tool]) => !isPresent(tool) && !isReplaceable(tool));
  if (needed.length === 0) return;
  const names = namesOf(needed);
  warn([
    ...failure,
    `Not installed: ${names.join(', ')}. Tests that need it FAIL. Install: apt-get install ${names.join(' ')}`,
    ...needed.flatMap(([name, { variable }]) =>
      variable === undefined ? [] : [`${name}, when it is somewhere else: name it in ${variable}`],
    ),
  ]);
}

/** @returns {string[]} the commands that failed; none where installing is impossible */
function install(packages) {
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) return [];
  console.error(`Installing for the tests: ${packages.join(', ')} …`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (args, stderr = 'inherit') =>
    spawnSync('apt-get', args, { env, stdio: ['ignore', 'ignore', stderr] }).status === 0;
  if (!apt(['update', '-qq'])) return ['apt-get update failed.'];
  // Never in place of something that is installed, as Docker's own packages instead of Debian's.
  const words = ['install', '-y', '-qq', '--no-install-recommends', '--no-remove'];
  // All at once: for each call apt reads its index, and dpkg runs triggers like that of the manual's index.
  if (apt([...words, ...packages], 'ignore')) return [];
  // One by one: a distribution that lacks one of them has the others.
  const failed = packages.filter((name) => !apt([...words, name]));
  return failed.map((name) => `apt-get install ${name} failed.`);
}
