/**
 * `npm run test:agents [-- NAME… --rounds N --only faces|capabilities|kills|questions|responses|telemetry|pictures --victims A,B]`: external agents with their real packages, on a
 * scripted model. The packages are some hundreds of megabytes and do not belong to `npm test`: they are installed into a cache of this
 * user, each version once. The findings are written to `results.json`, from which `npm run docs` makes the tables of docs/agents.md.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isBuilt } from '../../scripts/stamp.mjs';
import { ensureSystemTools } from '../../scripts/system-tools.mjs';
import { root, run, toolEnvironment } from '../../scripts/toolchain.mjs';
import { presetNames } from '../../src/external/index.ts';
import { agentCache, agentPrograms } from './programs.ts';
import { victims } from './results.ts';
import { packagesOf, subjects } from './subjects.ts';
import { variable } from './variables.ts';

const parts = ['faces', 'capabilities', 'kills', 'questions', 'responses'];
const { positionals: names, values } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '1' },
    only: { type: 'string', default: parts.join(',') },
    victims: { type: 'string', default: victims.join(',') },
  },
});
const wrong = [
  ...values.only.split(',').filter((part) => ![...parts, 'telemetry', 'pictures'].includes(part)),
  ...values.victims.split(',').filter((name) => !victims.some((known) => known === name)),
  ...(/^[1-9]\d{0,3}$/.test(values.rounds) ? [] : [values.rounds]),
];
if (wrong.length > 0) {
  console.error(
    `✖ ${wrong.join(', ')}: --rounds takes a number, --only ${parts.join(', ')}, telemetry or pictures, --victims some of: ${victims.join(', ')}`,
  );
  process.exit(2);
}
const unknown = names.find((name) => !presetNames.some((known) => known === name));
if (unknown !== undefined) {
  console.error(`✖ ${unknown} is not an agent of these tests. Agents: ${subjects.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const chosen = subjects.filter(({ name }) => names.length === 0 || names.includes(name));
const packages = chosen.flatMap(packagesOf);

for (const each of packages) install(each);

/** Installs a package of this version unless it is there. */
function install(name: string): void {
  const stamp = join(agentCache, 'installed', encodeURIComponent(name));
  if (existsSync(stamp)) return;
  console.log(`Installing ${name} …`);
  mkdirSync(join(agentCache, 'installed'), { recursive: true });
  // opencode is complete after its own script only.
  const args = [
    'install',
    '--ignore-scripts=false',
    '--prefix',
    agentCache,
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    name,
  ];
  const { status } = spawnSync('npm', args, { cwd: agentCache, stdio: 'inherit', env: toolEnvironment() });
  if (status !== 0) {
    console.error(`\n✖ THE AGENTS WERE NOT TESTED: npm could not install ${name}.`);
    process.exit(1);
  }
  writeFileSync(stamp, '');
}

ensureSystemTools();
if (!isBuilt()) run('npm', ['run', 'build']);
const env = {
  ...toolEnvironment(),
  [variable.programs]: agentPrograms,
  [variable.names]: chosen.map(({ name }) => name).join(','),
  [variable.rounds]: values.rounds,
  [variable.victims]: values.victims,
};
let exitCode = 0;
for (const file of values.only.split(',')) {
  const words = ['--disable-warning=ExperimentalWarning', '--conditions=development'];
  const program = join(root, 'test', 'agents', `${file}.agents.ts`);
  const { status } = spawnSync(process.execPath, [...words, program], { cwd: root, stdio: 'inherit', env });
  exitCode ||= status ?? 1;
}
process.exit(exitCode);
