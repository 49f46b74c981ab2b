import { classifyHost, type HostVerdict } from '../host/index.ts';
import type { FileText } from './stack-view.ts';

/** A site of the gateway's file: an address at the beginning of a line, alone before its block. */
const site = /^(?:https:\/\/)?([^\s{}():@#]+|\[[0-9a-fA-F:.]+\]) \{$/m;

/** The host the gateway answers for, as its file says. @returns null: the file is not there or names none */
export function publicHostIn(caddyfile: FileText): HostVerdict | null {
  if (typeof caddyfile !== 'string') return null;
  const [, name] = site.exec(caddyfile) ?? [];
  if (name === undefined) return null;
  // Names for tests are accepted here: the command that wrote the file has decided about them.
  return classifyHost(name.replace(/^\[|\]$/g, ''), { allowTestNames: true });
}
