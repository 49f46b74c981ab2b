/** Error codes. */
export const gitErrorCodes = [
  /** The remote could not be reached, refused, answered nonsense or has no such ref. */
  'reviewTargetFetchFailed',
  /** The head on the remote is not the one that was asked for: `actualHead`. */
  'reviewTargetMoved',
  /** The workspace of the route is no git repository that can be used. */
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
  /** A path, or a worktree, outside what we answer for. */
  'pathOutside',
  /** The worktree is not as it was made. */
  'worktreeDirty',
  'gitCommandFailed',
  'gitTimedOut',
  /** Git needed more memory than it may have: with the same repository it will again. */
  'gitMemoryExceeded',
  'gitMissing',
] as const;
export type GitErrorCode = (typeof gitErrorCodes)[number];

/** A failure of git or of what it was asked to do. The message holds no secret and no control characters. */
export class GitError extends Error {
  override readonly name = 'GitError';
  readonly code: GitErrorCode;
  /** The same call may succeed later, with nothing changed by us. */
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
