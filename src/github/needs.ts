/** Permissions and events that the App needs (docs/review-backend.md), by whether reviews are written back. */
type Level = 'read' | 'write';
type Granted = Readonly<Record<string, string>>;

const reading: Readonly<Record<string, Level>> = {
  contents: 'read',
  metadata: 'read',
  pull_requests: 'read',
  issues: 'read',
};
const writing: Readonly<Record<string, Level>> = {
  ...reading,
  pull_requests: 'write',
  issues: 'write',
  checks: 'write',
};

export const neededPermissions = (isWriting: boolean): Readonly<Record<string, Level>> =>
  isWriting ? writing : reading;

/** The first is needed for commands (specification §4.4, rule 5); without the others things are only found by looking. */
export const neededEvents = ['issue_comment', 'pull_request', 'pull_request_review_comment', 'check_run'] as const;

const rank: Readonly<Record<string, number>> = { read: 1, write: 2, admin: 3 };

/** `contents: read` for each that is not granted. */
export function missingPermissions(granted: Granted, isWriting: boolean): readonly string[] {
  return Object.entries(neededPermissions(isWriting))
    .filter(([permission, level]) => (rank[granted[permission] ?? ''] ?? 0) < (rank[level] ?? 0))
    .map(([permission, level]) => `${permission}: ${level}`);
}

export const missingEvents = (subscribed: readonly string[]): readonly string[] =>
  neededEvents.filter((event) => !subscribed.includes(event));
