/** The library, as types for everybody; its code is loaded with the first server that is started: it costs 30 MiB. */
export type * from '@modelcontextprotocol/client';

let loading: Promise<typeof import('@modelcontextprotocol/client')> | undefined;

export function loadLibrary(): Promise<typeof import('@modelcontextprotocol/client')> {
  loading ??= import('@modelcontextprotocol/client');
  return loading;
}
