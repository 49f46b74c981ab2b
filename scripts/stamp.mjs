/** Whether `dist/` was built from the sources that are here. Plain JavaScript: it runs before anything is installed. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './toolchain.mjs';

const stampFile = join(root, 'dist', '.stamp');
const sources = ['src', 'machines', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json'];

/** Files under `path`, the path itself when it is one, in a fixed order. */
function filesOf(path) {
  if (!existsSync(path)) return [];
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** Hash of everything the build is made from. */
export function sourcesHash() {
  const hash = createHash('sha256');
  for (const source of sources) {
    const path = join(root, source);
    const files = source.includes('.') ? [path] : filesOf(path);
    for (const file of files.sort()) hash.update(file.slice(root.length)).update('\0').update(readFileSync(file));
  }
  return hash.digest('hex');
}

export const isBuilt = () => existsSync(stampFile) && readFileSync(stampFile, 'utf8') === sourcesHash();
export const markBuilt = (hash) => writeFileSync(stampFile, hash);
