/** Error codes. */
export const gitErrorCodes = [
  /** The remote is unreachable, refused, sent an invalid response or has no such ref. */
  'reviewTargetFetchFailed',
  /** The head on the remote is not the requested one: `actualHead`. */
  'reviewTargetMoved',
  /** The workspace of the route is not a usable git repository. */
  'baseWorkspaceNotGitRepository',
  /** SHA-256 repositories: no forge serves pull requests of them. */
  'objectFormatUnsupported',
  /** Head and base have no common ancestor. */
  'mergeBaseMissing',
  /** Git refuses the tree: names such as `.git` in it. */
  'treeUnsafe',
  /** More files, or more bytes, than a worktree may have. */
  'treeTooLarge',
  'fileTooLarge',
  /** A path or a worktree outside the directories of the reviews. */
  'pathOutside',
  /** The worktree was changed after its creation. */
  'worktreeDirty',
  'gitCommandFailed',
  'gitTimedOut',
  /** Git needed more memory than its limit: the same repository will fail again. */
  'gitMemoryExceeded',
  'gitMissing',
] as const;
export type GitErrorCode = (typeof gitErrorCodes)[number];

/** A failure of git or of a request to it. The message holds no secret and no control characters. */
export class GitError extends Error {
  override readonly name = 'GitError';
  readonly code: GitErrorCode;
  /** A repeated call may succeed later, without a change on our side. */
  readonly isRetryable: boolean;
  /** Head of the remote, with `reviewTargetMoved`. */
  readonly actualHead: string | null;

  constructor(
    code: GitErrorCode,
    message: string,
    {
      isRetryable = false,
      actualHead = null,
      cause,
    }: { isRetryable?: boolean; actualHead?: string | null; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.isRetryable = isRetryable;
    this.actualHead = actualHead;
  }
}
