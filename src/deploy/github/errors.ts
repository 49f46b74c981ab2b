/** Reason why the App could not be asked, or the refusal of GitHub. */
export type AppErrorCode =
  /** The id and the key do not belong together, or the App is gone. */
  'credentialsRefused' | 'notFound' | 'refused' | 'unreachable' | 'timedOut' | 'invalidAnswer';

const hints: Readonly<Record<AppErrorCode, string>> = {
  credentialsRefused:
    'The App ID and the key file must be of the same App; both are on its page under Settings → Developer settings.',
  notFound: 'See that the App still exists and is installed.',
  refused: 'See whether the App is suspended, or is asked for too much; try again later.',
  unreachable: 'See that this host reaches GitHub over HTTPS, and that GitHub.Endpoint is right.',
  timedOut: 'See that this host reaches GitHub over HTTPS; try again.',
  invalidAnswer: 'See that GitHub.Endpoint is right and that nothing in between answers for GitHub.',
};

/** A question to GitHub without a good answer. Its message holds nothing of the request. */
export class AppQuestionError extends Error {
  override readonly name = 'AppQuestionError';
  readonly code: AppErrorCode;
  readonly hint: string;

  constructor(code: AppErrorCode, message: string) {
    super(message);
    this.code = code;
    this.hint = hints[code];
  }
}
