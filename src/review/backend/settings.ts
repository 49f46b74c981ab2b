import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../log/index.ts';
import {
  type BackendSettings,
  configuredRepositories,
  type Environment,
  SettingsError,
  SettingsSource,
  secretSettings,
} from '../settings/index.ts';
import { type ReviewStore, retryLevel } from '../store/index.ts';
import { BackendError } from './error.ts';

export interface OpenSettingsOptions {
  readonly configFile: string;
  readonly stateDirectory: string;
  readonly env: Environment;
  readonly options?: ReadonlyMap<string, string>;
  readonly logger: Logger;
}

/** Reads the settings and follows changes; the logger redacts their secrets. @throws BackendError */
export function openSettings(given: OpenSettingsOptions): SettingsSource {
  const { logger } = given;
  const source = open(given);
  protect(source.current, logger);
  source.subscribe(({ settings }) => protect(settings, logger));
  return source;
}

function open({ configFile, stateDirectory, env, options, logger }: OpenSettingsOptions): SettingsSource {
  try {
    const place = { file: configFile, env, stateRoot: stateDirectory, ...(options && { options }) };
    return new SettingsSource({ place, logger });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const hint = 'Correct the named settings, then start again. docs/review-backend.md lists every setting.';
    throw new BackendError('settingsInvalid', error.message, hint, { cause: error });
  }
}

function protect(settings: BackendSettings, logger: Logger): void {
  for (const path of secretSettings) {
    const secret = path.split('.').reduce<unknown>((inside, key) => (inside as Record<string, unknown>)[key], settings);
    if (typeof secret === 'string' && secret !== '') logger.protect(secret);
  }
}

/**
 * Updates the repositories in the database now and after each change of the settings.
 * @param retryMs pause after a failed update
 * @returns stops it
 */
export async function followRepositories(
  settings: Pick<SettingsSource, 'current' | 'subscribe'>,
  store: Pick<ReviewStore, 'syncRepositories' | 'publish'>,
  logger: Logger,
  retryMs = 5_000,
): Promise<() => Promise<void>> {
  const write = () => store.syncRepositories(configuredRepositories(settings.current));
  await write();
  const stop = new AbortController();
  const { signal } = stop;
  /** Retries until the update succeeds, because the database can be unavailable when the settings change. */
  async function follow(changed: readonly string[]): Promise<void> {
    while (!signal.aborted) {
      try {
        await write();
        return await store.publish('source.changed', { what: 'settings', changed });
      } catch (error) {
        logger[retryLevel(error)]('could not update the repositories after a change of the settings; retrying', {
          error,
        });
        await pause(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
  let writing: Promise<void> = Promise.resolve();
  const unsubscribe = settings.subscribe(({ changed }) => {
    writing = writing.then(() => follow(changed));
  });
  return async () => {
    unsubscribe();
    stop.abort();
    await writing;
  };
}
