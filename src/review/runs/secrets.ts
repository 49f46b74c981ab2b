import { secretSettings } from '../settings/index.ts';
import type { RunContext } from './types.ts';

/** Texts that must not be published: secrets of the settings and of this process. */
export function secretsOf({ settings, secrets }: Pick<RunContext, 'settings' | 'secrets'>): string[] {
  const configured = secretSettings.map((path) =>
    path.split('.').reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], settings()),
  );
  return [...configured, ...(secrets ?? [])].filter((text) => typeof text === 'string').filter((text) => text !== '');
}
