import { createHash } from 'node:crypto';

/** What makes a finding the finding it is. */
export interface FindingIdentity {
  readonly path: string;
  readonly title: string;
  readonly oldText?: string | undefined;
}

const normalised = (text: string): string => text.toLowerCase().replace(/\s+/g, ' ').trim();

/**
 * The same for the same remark about the same text, wherever the text has moved to and however it is indented: a finding that
 * was told is not told again. A remark without a text is known by its title.
 */
export function fingerprintOf({ path, title, oldText = '' }: FindingIdentity): string {
  const subject = normalised(oldText) || `title:${normalised(title)}`;
  return createHash('sha256').update(`${path}\0${subject}`).digest('hex').slice(0, 24);
}

/** Share of words that two titles have in common, from 0 to 1 (Jaccard). */
export function similarity(left: string, right: string): number {
  const words = (text: string) => new Set(normalised(text).match(/[\p{L}\p{N}_]{3,}/gu) ?? []);
  const [a, b] = [words(left), words(right)];
  const common = [...a].filter((word) => b.has(word)).length;
  const all = a.size + b.size - common;
  return all === 0 ? 0 : common / all;
}

/** From here on two remarks about different texts of the same file are taken for the same. */
const sameTitle = 0.7;

/** Whether a finding repeats another one: a model words the same remark differently each time. */
export function repeats(finding: FindingIdentity, known: FindingIdentity): boolean {
  if (finding.path !== known.path) return false;
  return fingerprintOf(finding) === fingerprintOf(known) || similarity(finding.title, known.title) >= sameTitle;
}
