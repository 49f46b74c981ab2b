/**
 * Brings the harnesses that the lab compares with: each is one npm package that needs no other and no installation script, checked
 * against the digest of its version. They lie in `bench/node_modules/.lab`, outside of the committed files.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface Package {
  readonly name: string;
  readonly version: string;
  /** SHA-512 of the package file, base64, as in a lock file. */
  readonly digest: string;
}

const store = join(import.meta.dirname, '..', 'node_modules', '.lab');

/**
 * @returns the directory of the unpacked package
 * @throws when the package cannot be had, or is another one than was studied
 */
export function packageDirectory({ name, version, digest }: Package): string {
  const place = join(store, `${name.replace('/', '+')}@${version}`);
  if (existsSync(place)) return place;
  mkdirSync(store, { recursive: true });
  const draft = mkdtempSync(join(store, 'draft-'));
  try {
    console.error(`Bringing ${name}@${version} …`);
    execFileSync('npm', ['pack', '--silent', `${name}@${version}`], {
      cwd: draft,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [file = ''] = readdirSync(draft);
    const found = createHash('sha512')
      .update(readFileSync(join(draft, file)))
      .digest('base64');
    if (found !== digest) throw new Error(`${name}@${version} is not the package that was studied: sha512-${found}`);
    execFileSync('tar', ['-xzf', file], { cwd: draft });
    renameSync(join(draft, 'package'), place);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return place;
}
