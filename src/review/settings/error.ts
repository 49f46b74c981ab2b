import { kindOf } from './json.ts';

/** One invalid setting. Holds no value of a setting. */
export interface SettingsProblem {
  /** A file, or `environment variable NAME`. */
  readonly source: string;
  /** `GitHub.Repositories.0`; empty for the whole of the source. */
  readonly keyPath: string;
  readonly expected: string;
}

/** Settings that cannot be used. The message names the source, the key and the expected value, never the present one. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  readonly problems: readonly SettingsProblem[];

  constructor(problems: readonly SettingsProblem[]) {
    super(problems.map(sentence).join('; '));
    this.problems = problems;
  }
}

const sentence = ({ source, keyPath, expected }: SettingsProblem): string =>
  `${source}: ${keyPath === '' ? 'the whole' : keyPath} must be ${expected}`;

/** `a whole number from 1 to 9, but is a string`: names only the kind of the present value. */
export const butIs = (expected: string, value: unknown): string => `${expected}, but is ${kindOf(value)}`;
