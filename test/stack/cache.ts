import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where the tests keep what they have fetched: the same directory as `test/deploy/debian.ts`. Nobody else can have filled it. */
export function cacheDirectory(): string {
  const base = process.env['XDG_CACHE_HOME'];
  const uid = process.getuid?.() ?? 0;
  const directory = base ? join(base, 'oratorio-test-tools') : join(tmpdir(), `oratorio-test-tools-${uid}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = lstatSync(directory);
  if (owner === uid && (mode & 0o022) === 0) return directory;
  throw new Error(`${directory} is not a directory of this user alone`);
}
