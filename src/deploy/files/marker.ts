import { createHash } from 'node:crypto';

const firstLine = /^# Managed by oratorio server; checksum ([0-9a-f]{64})\n/;

/** `text` under a first line that says who made it and proves that nobody changed it since. */
export function marked(text: string): string {
  return `# Managed by oratorio server; checksum ${checksumOf(text)}\n${text}`;
}

/**
 * Whose file this is: as we made it, ours but changed by hand since, or of somebody else. Only `ours` may be overwritten or
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
