/**
 * Installs what the tests use of the system besides Node: bubblewrap, a browser, curl, Compose, Perl and PostgreSQL. On a Debian
 * machine, as root, a missing package is installed; elsewhere a warning names it, and the tests that need it fail.
 */
import { spawnSync } from 'node:child_process';

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
  ['docker-compose', { programs: ['docker-compose'], variable: 'ORATORIO_TEST_COMPOSE_V1' }],
  ['perl', { programs: ['perl'] }],
  ['postgresql', { programs: ['postgres', '/usr/lib/postgresql/*/bin/postgres'], variable: 'ORATORIO_TEST_POSTGRES' }],
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
  // Where programs are not on the path of a shell, the tests search for them, and name what is missing.
  if (process.platform !== 'linux') return;
  const missing = [...wanted].filter(([, tool]) => !isPresent(tool));
  if (missing.length === 0) return;
  const failure = install(namesOf(missing));
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
  const apt = (...args) => spawnSync('apt-get', args, { env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;
  if (!apt('update', '-qq')) return ['apt-get update failed.'];
  // One by one: a distribution that lacks one of them has the others.
  const failed = packages.filter((name) => !apt('install', '-y', '-qq', '--no-install-recommends', name));
  return failed.map((name) => `apt-get install ${name} failed.`);
}
