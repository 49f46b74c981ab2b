/** Problem of a configuration, precise enough to correct it. */
export interface ConfigProblem {
  readonly file: string;
  /** Dotted path of the key, in the spelling of the documentation; empty for the file as a whole. */
  readonly keyPath: string;
  /** Expected value, in words. */
  readonly expected: string;
  /** Actual value, in words; never the value of a secret. */
  readonly received: string;
  /** Line of the key in the file, from 1. */
  readonly line?: number | undefined;
}

/** Error of an unusable configuration file. The message names the file, the key, the expected and the received value. */
export class ConfigError extends Error implements ConfigProblem {
  override readonly name = 'ConfigError';
  readonly file: string;
  readonly keyPath: string;
  readonly expected: string;
  readonly received: string;

  constructor({ file, keyPath, expected, received, line }: ConfigProblem, options?: ErrorOptions) {
    super(
      `${file}${line === undefined ? '' : `:${line}`}: ${keyPath === '' ? 'the file' : keyPath} must be ${expected}, but is ${received}`,
      options,
    );
    this.file = file;
    this.keyPath = keyPath;
    this.expected = expected;
    this.received = received;
  }
}

/** A decision about the trust of a workspace that cannot be made or recorded. The message is meant for the user. */
export class TrustError extends Error {
  override readonly name = 'TrustError';
}
