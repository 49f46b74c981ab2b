/** Writes `docs/cli.md`; with `--check` it only tells, by its exit code, whether the file is what it should be. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cliReference } from '../src/cli/reference.ts';
import { root } from './toolchain.mjs';

const file = join(root, 'docs', 'cli.md');
if (!process.argv.includes('--check')) writeFileSync(file, cliReference());
else if (readFileSync(file, 'utf8') !== cliReference()) {
  console.error('docs/cli.md is out of date: node scripts/node22.mjs scripts/cli-docs.ts');
  process.exitCode = 1;
}
