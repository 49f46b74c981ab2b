import { isJsonObject } from './json.ts';
import type { BackendSettings } from './schema.ts';

/** Settings, or sections of them, that hold only after a restart: sockets, databases and clients are made with them. */
const atStart: readonly string[] = [
  'Server',
  'Storage.ConnectionString',
  'Database',
  'GitHub.Endpoint',
  'GitHub.GitEndpoint',
  'AgentServer.AppServerUrl',
  'AgentServer.AppServerToken',
  'AgentServer.HubDiscoveryEnabled',
  'AgentServer.ManagedWorktreesEnabled',
  'AgentServer.WorktreeRoot',
];

export const needsRestart = (path: string): boolean =>
  atStart.some((each) => path === each || path.startsWith(`${each}.`));

/** Paths of the settings that differ; a list counts as one setting. */
export function changedPaths(before: BackendSettings, now: BackendSettings): readonly string[] {
  const found: string[] = [];
  compare(before, now, '');
  return found;

  function compare(one: unknown, other: unknown, path: string): void {
    if (isJsonObject(one) && isJsonObject(other)) {
      for (const key of new Set([...Object.keys(one), ...Object.keys(other)]))
        compare(one[key], other[key], path === '' ? key : `${path}.${key}`);
    } else if (JSON.stringify(one) !== JSON.stringify(other)) found.push(path);
  }
}
