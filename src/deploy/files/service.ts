/** Common settings of the services in both files of the composition. */
import { stringify } from 'yaml';
import { marked } from './marker.ts';

export interface MountOptions {
  /** The host labels files (SELinux): containers may only read and write files with a label that they share. */
  readonly isSelinux: boolean;
}

/** A path of the stack, inside of a container. */
export function mount(path: string, inside: string, options: MountOptions & { readonly isReadOnly?: boolean }): string {
  const flags = [...(options.isReadOnly ? ['ro'] : []), ...(options.isSelinux ? ['z'] : [])];
  return [`./${path}`, inside, ...(flags.length > 0 ? [flags.join(',')] : [])].join(':');
}

/** No power that is not needed, nothing written outside of volumes, bounded memory, processes and logs. */
export function hardened(limits: { readonly memory: string; readonly pids: number }) {
  return {
    init: true,
    read_only: true,
    tmpfs: ['/tmp', '/run'],
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
    pids_limit: limits.pids,
    mem_limit: limits.memory,
    restart: 'unless-stopped',
    stop_grace_period: '45s',
    logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
  };
}

export function healthcheck(test: readonly string[]) {
  return { test: [...test], interval: '5s', timeout: '5s', retries: 6, start_period: '30s' };
}

/**
 * Healthy when a GET is answered with 2xx. By the shell of the image: it has no curl, and starting Node takes twenty times the
 * processor time, every five seconds for as long as the stack runs. Without `$`, which Compose would replace.
 */
export function healthcheckByGet({ port, path }: { readonly port: number; readonly path: string }) {
  const host = `127.0.0.1:${port}`;
  const request = [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', '', ''].join('\\r\\n');
  const script = [
    `exec 3<>/dev/tcp/${host.replace(':', '/')}`,
    `printf '${request}' >&3`,
    "head -n 1 <&3 | grep -q '^HTTP/1.1 2'",
  ].join(' && ');
  return healthcheck(['CMD', 'timeout', '4', 'bash', '-c', script]);
}

/** A file of the composition: our mark, a description, and the document. */
export function composed(about: string, document: object): string {
  const comment = about.replace(/^/gm, '# ');
  return marked(
    `${comment}\n${stringify(document, { lineWidth: 0, aliasDuplicateObjects: false, compat: 'yaml-1.1' })}`,
  );
}
