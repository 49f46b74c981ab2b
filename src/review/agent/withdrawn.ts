import * as v from 'valibot';
import { type DroppedFinding, SubmittedFinding } from '../../protocol/index.ts';
import { areOneReport, type FindingIdentity, placeOf } from '../anchors/index.ts';
import type { AnchoredFinding, WithdrawnFinding } from './types.ts';

/** Finding of a draft in the form that the comparison of drafts needs. */
type Reported = FindingIdentity & Pick<DroppedFinding, 'line' | 'startLine'>;

/** Findings of one draft, and of all refused drafts of a review, that are compared at most. */
const comparedFindings = 200;
const comparedDrafts = 20;

const { severity } = SubmittedFinding.entries;
/** Fields of a finding whose draft was refused: each may be invalid. */
const Refused = v.object({
  severity: v.fallback(severity, 'note'),
  title: v.pipe(
    v.string(),
    v.trim(),
    v.nonEmpty(),
    v.transform((title) => title.slice(0, 200).toWellFormed()),
  ),
  path: v.fallback(v.pipe(v.string(), v.maxLength(4_096)), ''),
  oldText: v.fallback(v.optional(v.pipe(v.string(), v.maxLength(20_000))), undefined),
});

/** Compares the drafts of a review, so that no finding of the agent is lost without a word. */
export class SubmittedFindings {
  readonly #drafts: Reported[][] = [];
  #taken = -1;

  take(findings: readonly AnchoredFinding[]): void {
    this.#taken = this.#drafts.push(findings.map(reported)) - 1;
  }

  /** @param findings field of the refused draft, of any type */
  refuse(findings: unknown): void {
    if (!Array.isArray(findings) || this.#drafts.length >= comparedDrafts) return;
    const named = findings.slice(0, comparedFindings).flatMap((each): Reported[] => {
      const { success, output } = v.safeParse(Refused, each);
      return success ? [{ ...output, body: '', side: 'RIGHT' }] : [];
    });
    this.#drafts.push(named);
  }

  /** Findings of other drafts that the last valid draft lacks. */
  get missing(): readonly WithdrawnFinding[] {
    const pool = [...(this.#drafts[this.#taken] ?? [])];
    const missing: WithdrawnFinding[] = [];
    for (const [index, draft] of this.#drafts.entries()) {
      if (index === this.#taken) continue;
      const reason = index < this.#taken ? 'withdrawn' : 'notTaken';
      const lacking = withoutCounterpart(draft, pool);
      pool.push(...lacking);
      missing.push(...lacking.map((each) => ({ ...dropped(each), reason }) as const));
    }
    return missing;
  }
}

function reported({ finding, anchor }: AnchoredFinding): Reported {
  const { severity, title, body, path, oldText } = finding;
  return { ...{ severity, title, body, path, oldText }, ...placeOf(anchor) };
}

const dropped = ({ severity, title, path, side, line, startLine }: Reported) => ({
  ...{ severity, title, path, side },
  ...(line !== undefined && { line }),
  ...(startLine !== undefined && { startLine }),
});

/** Findings without one of their own in the pool. Equal titles are paired first, because a corrected finding may have another one. */
function withoutCounterpart(findings: readonly Reported[], pool: readonly Reported[]): readonly Reported[] {
  const free = new Set(pool);
  const isPaired = (isOne: (other: Reported) => boolean): boolean => {
    const found = [...free].find(isOne);
    return found !== undefined && free.delete(found);
  };
  const reworded = findings.filter((each) => !isPaired(({ title }) => title === each.title));
  return reworded.filter((each) => !isPaired((other) => areOneReport(each, other)));
}
