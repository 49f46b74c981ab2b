import * as v from 'valibot';
import { ConfigError } from './error.ts';
import type { LoadedConfig } from './load.ts';
import { Config } from './schema.ts';

const Names = v.array(v.string());

/** `LoadedConfig` in the form that one process passes to another, including keys. */
const CarriedConfig = v.object({
  config: Config,
  warnings: Names,
  referencedVariables: Names,
  files: Names,
  trust: v.picklist(['trusted', 'restricted']),
  restrictedSettings: Names,
  untrustedPrompt: v.string(),
  layers: v.array(v.object({ file: v.string(), settings: v.record(v.string(), v.unknown()) })),
});

/** Reads settings that another process resolved. @throws ConfigError that names the key, never its value */
export function carriedConfig(carried: unknown): LoadedConfig {
  const read = v.safeParse(CarriedConfig, carried, { abortEarly: true });
  if (read.success) return read.output;
  const [issue] = read.issues;
  throw new ConfigError({
    file: 'the launch document',
    keyPath: v.getDotPath(issue) ?? 'settings',
    expected: issue.expected ?? 'another value',
    received: 'a value that is not shown',
  });
}
