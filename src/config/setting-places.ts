import { FileRefusedError, lineOf, readBoundedFile } from '../lib/index.ts';
import { blamedSettings, restartLimit, type SettingPlace, type SettingPlaces } from '../protocol/index.ts';
import { userConfigFile } from './home.ts';
import type { LoadedConfig } from './load.ts';
import { isJsonObject } from './parse.ts';

/** Finds files and lines of the settings that may cause a problem, by key path. */
export function settingPlaces({ layers }: Pick<LoadedConfig, 'layers'>, home: string): SettingPlaces {
  const servers = layers.flatMap(({ settings }) => namesIn(settings['McpServers']).map((name) => ['McpServers', name]));
  const keyPaths = [
    ...Object.values(blamedSettings)
      .flat()
      .map((name) => [name]),
    ...servers,
  ];
  const limit = placeOf(restartLimit.split('.'), layers, home);
  return {
    ...Object.fromEntries(keyPaths.map((keyPath) => [keyPath.join('.'), placeOf(keyPath, layers, home)])),
    [restartLimit]: limit ?? { file: userConfigFile(home), line: null, isUsers: true },
  };
}

function placeOf(keyPath: readonly string[], layers: LoadedConfig['layers'], home: string): SettingPlace | undefined {
  const layer = layers.findLast(({ settings }) => isSet(keyPath.reduce<unknown>(memberOf, settings)));
  if (!layer) return undefined;
  const { file } = layer;
  return { file, line: lineIn(file, keyPath), isUsers: file === userConfigFile(home) };
}

const memberOf = (value: unknown, key: string): unknown => (isJsonObject(value) ? value[key] : undefined);
const namesIn = (value: unknown): string[] => (isJsonObject(value) ? Object.keys(value) : []);
const isSet = (value: unknown): boolean => value !== undefined && value !== '';

/** Line of a setting in a configuration file; null for an unreadable file. */
export function lineIn(file: string, keyPath: readonly string[]): number | null {
  try {
    const text = readBoundedFile(file, { owner: 'any', links: 'follow' });
    return text === undefined ? null : lineOf(text, keyPath);
  } catch (error) {
    if (error instanceof FileRefusedError) return null;
    throw error;
  }
}
