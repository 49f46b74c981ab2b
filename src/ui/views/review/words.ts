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

export interface StatusLabel extends Look {
  readonly word: string;
}
const label = (word: string, tone: Look['tone'], shape: Look['shape']): StatusLabel => ({ word, tone, shape });
const moving = (word: string) => label(word, 'progress', 'arc');

const runLooks: Readonly<Record<ReviewRunState, StatusLabel>> = {
  queued: label('Waiting', 'neutral', 'ring'),
  preparing: moving('Preparing'),
  reviewing: moving('Reviewing'),
  drafting: moving('Drafting'),
  publishing: moving('Publishing'),
  backingOff: label('Retrying', 'warn', 'triangle'),
  cancelling: moving('Cancelling'),
  done: label('Reviewed', 'ok', 'disc'),
  failed: label('Failed', 'danger', 'cross'),
  cancelled: label('Cancelled', 'neutral', 'square'),
  superseded: label('Superseded', 'neutral', 'square'),
};
/** Word, shape and colour of the state of a run. An unknown state is shown by its name. */
export const lookOfRun = (state: string): StatusLabel =>
  (runLooks as Readonly<Record<string, StatusLabel>>)[state] ?? label(state, 'neutral', 'diamond');

export const draftLooks: Readonly<Record<ReviewDraft['status'], StatusLabel>> = {
  draft: label('To decide', 'warn', 'triangle'),
  publishing: moving('Publishing'),
  published: label('Published', 'ok', 'disc'),
  discarded: label('Discarded', 'neutral', 'square'),
  publishFailed: label('Not published', 'danger', 'cross'),
};
export const severityLooks: Readonly<Record<Severity, StatusLabel>> = {
  critical: label('Critical', 'danger', 'cross'),
  major: label('Major', 'warn', 'triangle'),
  minor: label('Minor', 'progress', 'diamond'),
  note: label('Note', 'neutral', 'ring'),
};
export const outcomeLooks: Readonly<Record<Delivery['outcome'], StatusLabel>> = {
  queued: moving('Queued'),
  processed: label('Processed', 'ok', 'disc'),
  ignored: label('Ignored', 'neutral', 'ring'),
  rejected: label('Rejected', 'warn', 'triangle'),
  failed: label('Failed', 'danger', 'cross'),
};
export const syncLooks: Readonly<Record<SyncJob['status'], StatusLabel>> = {
  queued: label('Waiting', 'neutral', 'ring'),
  running: moving('Running'),
  succeeded: label('Succeeded', 'ok', 'disc'),
  failed: label('Failed', 'danger', 'cross'),
};
export const writeLooks: Readonly<Record<SourceWrite['status'], StatusLabel>> = {
  pending: moving('Pending'),
  sent: label('Sent', 'ok', 'disc'),
  failed: label('Failed', 'danger', 'cross'),
  skipped: label('Skipped', 'neutral', 'square'),
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
