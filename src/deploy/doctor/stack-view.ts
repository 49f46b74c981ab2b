import { readFileSync } from 'node:fs';

import { allVariables, type EnvFile } from '../files/index.ts';
import type { StackLayout } from '../layout.ts';
import { secretsOfStack } from '../stack/index.ts';

/** The text of a file; null: it is not there; an error: it cannot be read. */
export type FileText = string | null | Error;
/** Files that people and programs read, by their names in `StackLayout`. */
export type StackTexts = Readonly<Record<'compose' | 'overlay' | 'caddyfile' | 'env' | 'config', FileText>>;

export function readTexts(layout: StackLayout): StackTexts {
  return {
    compose: textOf(layout.compose),
    overlay: textOf(layout.overlay),
    caddyfile: textOf(layout.caddyfile),
    env: textOf(layout.env),
    config: textOf(layout.config),
  };
}

export function textOf(path: string): FileText {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? null : new Error(`${path} cannot be read (${code ?? 'unknown'}).`);
  }
}

/** Value of `.env`, or its default. Empty: neither exists. */
export const valueIn = (env: EnvFile, name: string): string =>
  env.values.get(name) || (allVariables().find(([each]) => each === name)?.[1].default ?? '');

/** Texts that no finding may show: secret and unknown values of `.env` and of its earlier versions, and the App's key. */
export function secretsOf(layout: StackLayout, keyText: FileText): readonly string[] {
  return [...secretsOfStack(layout), ...(typeof keyText === 'string' ? [keyText] : [])];
}
