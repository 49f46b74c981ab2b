import { createHash } from 'node:crypto';
import { stackFiles } from '../layout.ts';

const firstLine = /^# Managed by oratorio server; checksum ([0-9a-f]{64})\n/;

/** Adds a first line that names this tool as the author and proves that the text is unchanged. */
export function marked(text: string): string {
  return `# Managed by oratorio server; checksum ${checksumOf(text)}\n${text}`;
}

/**
 * Determines the origin of a file: unchanged since we wrote it, changed by hand since, or not ours. Only `ours` may be overwritten or
 * removed (specification §2.9).
 */
export function ownershipOf(text: string): 'ours' | 'edited' | 'foreign' {
  const found = firstLine.exec(text);
  if (found === null) {
    return 'foreign';
  }
  return found[1] === checksumOf(text.slice(found[0].length)) ? 'ours' : 'edited';
}

function checksumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Text of the stack's `.gitignore`: keeps secrets, checkouts and our records out of a user's repository of the stack. */
export function gitignore(): string {
  const lines = [`/${stackFiles.env}`, `/${stackFiles.secrets}/`, `/${stackFiles.workspace}/`, `/${stackFiles.state}/`];
  return marked(`${lines.join('\n')}\n`);
}
