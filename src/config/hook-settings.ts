import * as v from 'valibot';

/** Moments at which hooks run. */
export const hookEvents = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'TurnEnd'] as const;
export type HookEvent = (typeof hookEvents)[number];

const longestMatcher = 200;
const matcherWords = `a regular expression of at most ${longestMatcher} characters`;

function isRegularExpression(text: string): boolean {
  try {
    return new RegExp(text).source !== '';
  } catch {
    return false;
  }
}

/** A program of the user that runs at a moment of a conversation. */
export const Hook = v.object({
  Matcher: v.pipe(
    v.optional(
      v.pipe(
        v.string(matcherWords),
        v.maxLength(longestMatcher, matcherWords),
        v.check(isRegularExpression, matcherWords),
      ),
    ),
    v.description(
      'Whole names of the tools that the hook is for, as a regular expression: "EditFile|WriteFile". Default: all.',
    ),
  ),
  Command: v.pipe(
    v.string('a shell command'),
    v.trim(),
    v.nonEmpty('a shell command'),
    v.maxLength(10_000, 'a shell command of at most 10000 characters'),
    v.description(
      'Shell command. Gets the event as JSON on standard input; exit code 2 blocks, with standard error as the reason.',
    ),
  ),
  TimeoutMs: v.pipe(
    v.optional(
      v.pipe(
        v.number('milliseconds'),
        v.integer('milliseconds'),
        v.minValue(100, 'at least 100'),
        v.maxValue(600_000, 'at most 600000'),
      ),
      60_000,
    ),
    v.description('Milliseconds after which the hook is ended. Default: 60000.'),
  ),
});
export type Hook = v.InferOutput<typeof Hook>;

const hooksOf = (moment: string) =>
  v.pipe(
    v.optional(v.pipe(v.array(Hook, 'a list of hooks'), v.maxLength(50, 'at most 50 hooks')), []),
    v.description(moment),
  );

/** `Hooks`. */
export const HookSettings = v.object({
  SessionStart: hooksOf('At the first turn of a conversation. Their output is context for the model.'),
  UserPromptSubmit: hooksOf(
    'Before a prompt reaches the model. Their output is context; a blocked prompt is not sent.',
  ),
  PreToolUse: hooksOf('Before a call of a tool, and before approval is requested. A blocked call is refused.'),
  PostToolUse: hooksOf('After a call of a tool. The model reads why it was blocked, with the result.'),
  TurnEnd: hooksOf('When the model has finished. Blocked, the turn continues with the reason, at most three times.'),
} satisfies Record<HookEvent, unknown>);
export type HookSettings = v.InferOutput<typeof HookSettings>;
