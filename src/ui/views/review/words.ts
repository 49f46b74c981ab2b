import type {
  Delivery,
  ReviewDraft,
  ReviewFinding,
  ReviewItem,
  ReviewRun,
  ReviewRunState,
  Severity,
  SourceWrite,
  SyncJob,
} from '../../../protocol/index.ts';
import type { Look } from '../../parts/tone.ts';

export interface Told extends Look {
  readonly word: string;
}
const told = (word: string, tone: Look['tone'], shape: Look['shape']): Told => ({ word, tone, shape });
const moving = (word: string) => told(word, 'progress', 'arc');

const runLooks: Readonly<Record<ReviewRunState, Told>> = {
  queued: told('Waiting', 'neutral', 'ring'),
  preparing: moving('Preparing'),
  reviewing: moving('Reviewing'),
  drafting: moving('Drafting'),
  publishing: moving('Publishing'),
  backingOff: told('Retrying', 'warn', 'triangle'),
  cancelling: moving('Cancelling'),
  done: told('Reviewed', 'ok', 'disc'),
  failed: told('Failed', 'danger', 'cross'),
  cancelled: told('Cancelled', 'neutral', 'square'),
  superseded: told('Superseded', 'neutral', 'square'),
};
/** Word, shape and colour of the state of a run. An unknown state is shown by its name. */
export const lookOfRun = (state: string): Told =>
  (runLooks as Readonly<Record<string, Told>>)[state] ?? told(state, 'neutral', 'diamond');

export const draftLooks: Readonly<Record<ReviewDraft['status'], Told>> = {
  draft: told('To decide', 'warn', 'triangle'),
  publishing: moving('Publishing'),
  published: told('Published', 'ok', 'disc'),
  discarded: told('Discarded', 'neutral', 'square'),
  publishFailed: told('Not published', 'danger', 'cross'),
};
export const severityLooks: Readonly<Record<Severity, Told>> = {
  critical: told('Critical', 'danger', 'cross'),
  major: told('Major', 'warn', 'triangle'),
  minor: told('Minor', 'progress', 'diamond'),
  note: told('Note', 'neutral', 'ring'),
};
export const outcomeLooks: Readonly<Record<Delivery['outcome'], Told>> = {
  queued: moving('Queued'),
  processed: told('Processed', 'ok', 'disc'),
  ignored: told('Ignored', 'neutral', 'ring'),
  rejected: told('Rejected', 'warn', 'triangle'),
  failed: told('Failed', 'danger', 'cross'),
};
export const syncLooks: Readonly<Record<SyncJob['status'], Told>> = {
  queued: told('Waiting', 'neutral', 'ring'),
  running: moving('Running'),
  succeeded: told('Succeeded', 'ok', 'disc'),
  failed: told('Failed', 'danger', 'cross'),
};
export const writeLooks: Readonly<Record<SourceWrite['status'], Told>> = {
  pending: moving('Pending'),
  sent: told('Sent', 'ok', 'disc'),
  failed: told('Failed', 'danger', 'cross'),
  skipped: told('Skipped', 'neutral', 'square'),
};

const severities: readonly Severity[] = ['critical', 'major', 'minor', 'note'];
/** The most severe first; within one severity by place. */
export const byWeight = (a: ReviewFinding, b: ReviewFinding): number =>
  severities.indexOf(a.severity) - severities.indexOf(b.severity) ||
  a.path.localeCompare(b.path) ||
  (a.line ?? 0) - (b.line ?? 0);

/** `owner/repo` of `github:github.com/owner/repo`; of another host with the host. */
export const repositoryName = (key: string): string => key.replace(/^github:/, '').replace(/^github\.com\//, '');
export const shortSha = (sha: string): string => sha.slice(0, 8);

export const triggerWords: Readonly<Record<ReviewRun['trigger'], string>> = {
  auto: 'automatic',
  mention: 'asked for in a comment',
  manual: 'by hand',
  checkRerequest: 're-run of its check',
};

/** Whether a run is not over. */
export const isActive = ({ state }: Pick<ReviewRun, 'state'>): boolean =>
  !['done', 'failed', 'cancelled', 'superseded'].includes(state);
/** Whether a draft can still be changed. */
export const isOpenDraft = ({ status }: Pick<ReviewDraft, 'status'>): boolean =>
  status === 'draft' || status === 'publishFailed';

/** Addresses that may be linked: data of the source is not trusted. */
export const webAddress = (url: string | undefined): string | undefined =>
  url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : undefined;

/** `14 findings`, `1 finding`. */
export const counted = (count: number, what: string): string =>
  `${count.toLocaleString()} ${what}${count === 1 ? '' : 's'}`;

/** `src/shop/cart.ts:12–14`, on which side when it is not the new one. */
export function placeOf({ path, line, startLine, side }: ReviewFinding): string {
  if (line === undefined) return path;
  const lines = startLine === undefined || startLine === line ? String(line) : `${startLine}–${line}`;
  return `${path}:${lines}${side === 'LEFT' ? ' (before the change)' : ''}`;
}

export const titleOf = ({ title, number }: Pick<ReviewItem, 'title' | 'number'>): string =>
  title.trim() === '' ? `Pull request ${number}` : title;
