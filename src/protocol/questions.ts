/** Questions of agents and MCP servers to a person. */
import * as v from 'valibot';
import { defaults } from './defaults.ts';

const text = (max: number) =>
  v.pipe(v.string(`a text of at most ${max} characters`), v.maxLength(max, `at most ${max} characters`));
const words = (max: number) => v.pipe(text(max), v.trim(), v.nonEmpty('a text'));

/** Field names that ask for a secret, which a question must not do. */
const secretName =
  /pass(?:word|wd|phrase|code)|secret|credential|(?:api|access|private|ssh|encryption|signing)[\s_-]*key|(?:^|[^a-z])(?:token|pwd|pin|otp|cvv|cvc)(?:$|[^a-z])|(?:access|auth|bearer|refresh|api)[\s_-]*token|(?:^|\s)keys?$/i;
/** Compares a name as a reader sees it: without invisible characters and wide letters. */
function isSecretName(name: string): boolean {
  const seen = name.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  return secretName.test(seen) || secretName.test(seen.replace(/([a-z])([A-Z])/g, '$1 $2'));
}
const noSecret = 'a subject other than a key or password, because a question never asks for a secret';

const header = v.pipe(
  words(200),
  v.maxLength(12, 'at most 12 characters'),
  v.check((name) => !isSecretName(name), noSecret),
);
const distinct = (names: readonly string[]): boolean => new Set(names).size === names.length;

/** One question of our own agent. The user may always answer in words of their own. */
export const AgentQuestion = v.object({
  header: v.pipe(header, v.description('Unique short name, at most 12 characters.')),
  question: v.pipe(
    words(1_000),
    v.check((asked) => !/\b(?:your|the|a) (?:\w+ )?(?:password|passphrase)\b/i.test(asked), noSecret),
  ),
  options: v.pipe(
    v.array(
      v.object({ label: words(100), description: v.optional(text(500), '') }, 'options, each {label, description}'),
      'a list of options, each {label, description}',
    ),
    v.minLength(2, '2 to 4 options'),
    v.maxLength(4, '2 to 4 options'),
    v.check((options) => distinct(options.map(({ label }) => label)), 'options with different labels'),
  ),
  multiSelect: v.optional(v.boolean('true or false')),
});

export const AgentQuestions = v.pipe(
  v.array(AgentQuestion, 'a list of 1 to 4 questions, each {header, question, options}'),
  v.minLength(1, '1 to 4 questions'),
  v.maxLength(4, '1 to 4 questions'),
  v.check((questions) => distinct(questions.map(({ header }) => header)), 'questions with different headers'),
);

/** Treats an invalid or null member of a foreign schema as absent. */
const loose = <T extends v.GenericSchema>(schema: T) => v.fallback(v.optional(schema), undefined);
const title = loose(text(200));
const described = { title, description: loose(text(2_000)) };
const size = loose(v.pipe(v.number(), v.minValue(0)));
const choice = text(500);
const maxChoices = 200;
const choices = v.pipe(v.array(choice), v.minLength(1), v.maxLength(maxChoices));
const titledChoices = v.pipe(
  v.array(v.object({ const: choice, title, description: loose(text(500)) })),
  v.minLength(1),
  v.maxLength(maxChoices),
);

const FormField = v.variant('type', [
  v.object({
    ...described,
    type: v.literal('string'),
    ...{
      minLength: size,
      maxLength: size,
      format: loose(text(40)),
      default: loose(text(defaults.questions.answerChars)),
    },
    ...{ enum: v.optional(choices), enumNames: loose(choices), oneOf: v.optional(titledChoices) },
  }),
  v.object({
    ...described,
    type: v.picklist(['number', 'integer']),
    ...{ minimum: loose(v.number()), maximum: loose(v.number()), default: loose(v.number()) },
  }),
  v.object({ ...described, type: v.literal('boolean'), default: loose(v.boolean()) }),
  v.object({
    ...described,
    type: v.literal('array'),
    ...{ minItems: size, maxItems: size, default: loose(v.pipe(v.array(choice), v.maxLength(maxChoices))) },
    items: v.union([
      v.object({ type: v.optional(v.literal('string'), 'string'), enum: choices }),
      v.object({ anyOf: titledChoices }),
    ]),
  }),
]);

const maxFields = 50;

/** Form of an MCP server or an external agent: a flat JSON Schema. Patterns are dropped, because their author checks the answer. */
export const FormSchema = v.pipe(
  v.object({
    type: v.optional(v.literal('object'), 'object'),
    properties: v.pipe(
      v.record(v.pipe(v.string(), v.minLength(1), v.maxLength(100)), FormField),
      v.check((fields) => Object.keys(fields).length <= maxFields, `at most ${maxFields} fields`),
      v.check(
        (fields) =>
          !Object.entries(fields).some(([name, { title = '', ...field }]) =>
            [name, title, 'format' in field ? (field.format ?? '') : ''].some(isSecretName),
          ),
        'fields other than keys and passwords, because a form never asks for a secret: send a url instead',
      ),
    ),
    required: loose(v.pipe(v.array(v.string()), v.maxLength(maxFields))),
  }),
);

/** Hosts for which a link may use http. */
const isLoopback = (host: string): boolean => host === 'localhost' || host === '127.0.0.1' || host === '[::1]';

/** Address for the user to open. Oratorio never fetches it. */
export const QuestionUrl = v.pipe(
  text(4_000),
  v.check((address) => {
    if (!URL.canParse(address)) return false;
    const { protocol, username, password, hostname } = new URL(address);
    const isPermitted = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
    return isPermitted && username === '' && password === '';
  }, 'an https address without a user name and password'),
  v.transform((address) => new URL(address).href),
);

export const questionSources = ['agent', 'externalAgent', 'mcp'] as const;
export type QuestionSource = (typeof questionSources)[number];

/** A question with its author: `questions` of our agent, a form (`schema`), or a link (`url`). */
export const QuestionForm = v.object({
  source: v.picklist(questionSources),
  from: v.pipe(v.string(), v.description('Name of the agent or MCP server that asks.')),
  message: v.optional(text(4_000)),
  questions: v.optional(AgentQuestions),
  schema: v.optional(FormSchema),
  url: v.optional(QuestionUrl),
});
export type QuestionForm = v.InferOutput<typeof QuestionForm>;

export const questionActions = ['accept', 'decline', 'cancel'] as const;
export type QuestionAction = (typeof questionActions)[number];

export const questionStates = ['open', 'answered', 'declined', 'cancelled', 'expired'] as const;
export type QuestionState = (typeof questionStates)[number];

const answerText = text(defaults.questions.answerChars);

/** Answers by field: the header of a question, or a property of the form. */
export const QuestionContent = v.pipe(
  v.record(
    v.pipe(v.string(), v.maxLength(200)),
    v.union([answerText, v.number(), v.boolean(), v.pipe(v.array(answerText), v.maxLength(maxChoices))]),
  ),
  v.check((answers) => Object.keys(answers).length <= maxFields, `at most ${maxFields} answers`),
);
export type QuestionContent = v.InferOutput<typeof QuestionContent>;

/** Answer to a question. `cancel`: the user closes it without a choice. */
export const QuestionAnswer = v.object({
  action: v.picklist(questionActions),
  content: v.optional(QuestionContent),
});
export type QuestionAnswer = v.InferOutput<typeof QuestionAnswer>;
