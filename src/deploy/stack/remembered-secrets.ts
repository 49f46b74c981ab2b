import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { readJson, writeFileAtomic } from '../../supervise/index.ts';
import { defaults } from '../defaults.ts';
import { parseEnv, secretsInEnv } from '../files/index.ts';
import type { StackLayout } from '../layout.ts';

/**
 * Values in base64: a search through the stack, or a glance at a screen, finds no second copy. Hashes cannot replace them, because
 * masking searches messages for the text of a secret, also within a word and in other spellings.
 */
const Remembered = v.array(v.string());

/** Most remembered values: those of several rotations. */
const mostValues = 64;

/**
 * Secrets of a stack that no output may hold: those of every line of `.env`, and those that earlier, valid versions of it had.
 * A container keeps the values that it was started with.
 */
export function secretsOfStack(layout: StackLayout): readonly string[] {
  return [...new Set([...secretsInEnv(textIn(layout.env) ?? ''), ...rememberedSecrets(layout)])];
}

/** Remembers the secrets of a valid `.env`, in a file that only its owner can read. The caller holds the lock of the stack. */
export function rememberSecrets(layout: StackLayout): void {
  const text = textIn(layout.env);
  if (text === null || parseEnv(text).problems.some(({ code }) => code !== 'duplicate')) return;
  const former = rememberedSecrets(layout);
  const all = [...new Set([...secretsInEnv(text), ...former])].slice(0, mostValues);
  if (all.every((value) => former.includes(value))) return;
  const coded = all.map((value) => Buffer.from(value).toString('base64'));
  writeFileAtomic(layout.knownSecrets, `${JSON.stringify(coded)}\n`, { mode: defaults.fileModes.secret });
}

/** Text of a file; null: it is missing or cannot be read, and so cannot be printed either. */
function textIn(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function rememberedSecrets(layout: StackLayout): readonly string[] {
  const found = readJson(layout.knownSecrets, Remembered);
  return found.kind === 'ok' ? found.value.map((value) => Buffer.from(value, 'base64').toString()) : [];
}
