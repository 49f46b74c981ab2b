import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SettingsProblem } from './error.ts';
import { type JsonObject, valueAt, withValue } from './json.ts';

/** A secret is a line, or a key of some kilobytes. */
const maxBytes = 65_536;

/** Result of reading the files that hold secrets. */
export interface SecretsRead {
  readonly settings: JsonObject;
  readonly files: readonly string[];
  readonly warnings: readonly string[];
  readonly problems: readonly SettingsProblem[];
}

/**
 * Puts the content of each file, without the line break at its end, in the place of its secret. A secret that is already set
 * wins: it was written more plainly. Relative paths begin at `directory`.
 *
 * @param files paths by the path of the secret
 */
export function readSecretFiles(
  settings: JsonObject,
  files: ReadonlyMap<string, string>,
  directory: string,
): SecretsRead {
  let result = settings;
  const read: string[] = [];
  const warnings: string[] = [];
  const problems: SettingsProblem[] = [];
  for (const [path, name] of files) {
    if (name === '') continue;
    const keys = path.split('.');
    const file = resolve(directory, name);
    read.push(file);
    if ((valueAt(settings, keys) ?? '') !== '') {
      warnings.push(`${path} is set and in a file too; the file is not used`);
      continue;
    }
    try {
      const { mode, size } = statSync(file);
      if (size > maxBytes) throw Object.assign(new Error('too large'), { code: 'EFBIG' });
      if (process.platform !== 'win32' && (mode & 0o007) !== 0)
        warnings.push(`${file}: everybody can read this secret`);
      result = withValue(
        result,
        keys,
        readFileSync(file, 'utf8')
          .replace(/^\ufeff/, '')
          .replace(/(?<!\n|\n\r)(?:\r?\n)+$/, ''),
      );
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      problems.push({ source: file, keyPath: path, expected: `a readable file with the secret (${code})` });
    }
  }
  return { settings: result, files: read, warnings, problems };
}
