import { type BackendSettings, secretSettings } from '../settings/index.ts';

/** Texts of the settings that must never leave. */
export function secretsOf(settings: BackendSettings): string[] {
  return secretSettings.flatMap((path) => {
    const value = path
      .split('.')
      .reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], settings);
    return typeof value === 'string' && value !== '' ? [value] : [];
  });
}
