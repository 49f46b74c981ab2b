/** `npm run check`: formatting, lint, types, import directions, style, generated documents. All run; one failure fails it. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { frugal } from './frugal-tsc.ts';
import { root, toolEnvironment } from './toolchain.mjs';

interface Check {
  readonly title: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Absent in a checkout that does not have this part yet. */
  readonly needs?: string;
}

const script = (name: string, ...args: string[]): Pick<Check, 'command' | 'args' | 'needs'> => ({
  command: process.execPath,
  args: ['--disable-warning=ExperimentalWarning', join(root, 'scripts', name), ...args],
  needs: join('scripts', name),
});

const checks: readonly Check[] = [
  { title: 'Format and lint', command: 'biome', args: ['ci', ...(process.stdout.isTTY ? [] : ['--colors=off'])] },
  { title: 'Types', command: 'tsc', args: ['-p', '.', ...frugal.args], env: frugal.env },
  { title: 'Import directions', ...script('check-imports.ts') },
  { title: 'Style', ...script('check-style.ts') },
  { title: 'Model catalogue', ...script('check-catalogue.ts') },
  { title: 'Generated documents', ...script('docs.ts', '--check') },
];

/** Where the scripts find their sources without types, which takes a quarter of the time of those that import the product. */
const NODE_COMPILE_CACHE = join(root, 'node_modules', '.cache', 'oratorio-checks');

let failures = 0;
for (const { title, command, args, needs, env } of checks) {
  if (needs !== undefined && !existsSync(join(root, needs))) continue;
  console.log(`── ${title}`);
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...toolEnvironment(), NODE_COMPILE_CACHE, ...env },
  });
  if (error) throw error;
  if (status !== 0) {
    failures += 1;
    console.error(`✖ ${title}`);
  }
}
process.exitCode = failures === 0 ? 0 : 1;
