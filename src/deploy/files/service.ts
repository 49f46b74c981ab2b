/** Common settings of the services in both files of the composition. Only settings that Compose v1.29 supports, too. */
import { stringify } from 'yaml';
import { marked } from './marker.ts';

export interface MountOptions {
  /** The host labels files (SELinux): containers may only read and write what carries a label they share. */
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

/** Healthy when a GET of `url` is answered well. With the Node of the image: there is no curl in it. */
export function healthcheckByFetch(url: string) {
  const script = `fetch('${url}', {signal: AbortSignal.timeout(4000)}).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))`;
  return healthcheck(['CMD', 'node', '-e', script]);
}

/** A file of the composition: our mark, what it is, and the document. Compose v1 reads YAML 1.1, where `0:0` is a number. */
export function composed(about: string, document: object): string {
  const comment = about.replace(/^/gm, '# ');
  return marked(
    `${comment}\n${stringify(document, { lineWidth: 0, aliasDuplicateObjects: false, compat: 'yaml-1.1' })}`,
  );
}
