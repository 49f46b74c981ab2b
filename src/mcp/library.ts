/** The library, as types for everybody; its code is loaded with the first server that is started: it costs 30 MiB. */
import type { Client } from '@modelcontextprotocol/client';

export type * from '@modelcontextprotocol/client';
export type Library = typeof import('@modelcontextprotocol/client');

let loading: Promise<Library> | undefined;

export function loadLibrary(): Promise<Library> {
  loading ??= import('@modelcontextprotocol/client');
  return loading;
}

/** Side that decides on tasks: the client (2025-11-25) or the server (2026-07-28). Undefined: no tasks. */
export function tasksOf(client: Client): 'asked' | 'decided' | undefined {
  const { tasks, extensions } = client.getServerCapabilities() ?? {};
  if (client.getProtocolEra() === 'modern') return extensions?.['io.modelcontextprotocol/tasks'] && 'decided';
  return tasks?.requests?.tools?.call && 'asked';
}
