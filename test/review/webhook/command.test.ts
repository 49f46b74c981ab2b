import fc from 'fast-check';
import t from 'tap';
import { decideCommand, judgeCommand, parseCommand } from '../../../src/review/webhook/index.ts';
import { anyCharacter } from '../../any-character.ts';

const verbs = {
  review: 'review',
  'full review': 'fullReview',
  pause: 'pause',
  resume: 'resume',
  resolve: 'resolve',
  cancel: 'cancel',
  status: 'status',
  help: 'help',
} as const;

const parsed = (verb: string, focus: string | null = null) => ({ kind: 'parsed', command: { verb, focus } });
const invalid = (errorCode: string) => ({ kind: 'invalid', errorCode: `githubCommentCommand${errorCode}` });

t.test('each text is a command or not, as the table says', async (t) => {
  const rows: readonly (readonly [string, object])[] = [
    ['@oratorio review', parsed('review')],
    ['  @ORATORIO \t ReView  \n', parsed('review')],
    ['@oratorio full   review', parsed('fullReview')],
    ['@oratorio review for SQL injection', parsed('review', 'SQL injection')],
    ['@oratorio Review FOR  ünïcode 🙂', parsed('review', 'ünïcode 🙂')],
    ['@oratorio review for for', parsed('review', 'for')],
    ['＠ｏｒａｔｏｒｉｏ ｒｅｖｉｅｗ', parsed('review')],
    ['@ora\u200btorio re\u2060view\ufeff', parsed('review')],
    ['@oratorio pause.', parsed('pause')],
    ['@oratorio, pause', parsed('pause')],
    ['@oratorio: Full review!', parsed('fullReview')],
    ['@oratorio,pause', parsed('pause')],
    ['@oratorio[bot] pause', parsed('pause')],
    ['@oratorio[bot]', invalid('VerbRequired')],
    ['@oratorio[x] pause', { kind: 'notCommand' }],
    ['@oratorio – resume', parsed('resume')],
    ['@oratorio、pause。', parsed('pause')],
    ['@oratorio, review for SQL injection.', parsed('review', 'SQL injection.')],
    [
      '@oratorio pause\n\nOn Mon, 1 Jan 2024 at 10:00, Ada <ada@example.com>\nwrote:\n\n> text\n>\n> more',
      parsed('pause'),
    ],
    ['@oratorio pause.\r\n\r\nAm Mo., 1. Jan. 2024 schrieb Ada:\r\n> text\r\n', parsed('pause')],
    ['@oratorio review for races\n> text', parsed('review', 'races')],
    ['@oratorio pause\n-- \nAda\nLondon', parsed('pause')],
    ['@oratorio pause\n\n-----Original Message-----\nFrom: Ada\n\ntext', parsed('pause')],
    ['@oratorio pause\n\n________________________________\nFrom: Ada', parsed('pause')],
    ['@oratorio pause\nplease\n> text', invalid('Multiline')],
    ['@oratorio pause\n> text\nplease', invalid('Multiline')],
    ['@oratorio pause\nAda wrote:', invalid('Multiline')],
    ['> text\n\n@oratorio pause', { kind: 'notCommand' }],
    ['@oratorio.pause', { kind: 'notCommand' }],
    ['@oratorio!', invalid('VerbRequired')],
    ['@oratorio', invalid('VerbRequired')],
    ['@oratorio review for', invalid('FocusRequired')],
    ['@oratorio review everything', invalid('ArgumentsInvalid')],
    ['@oratorio review forget', invalid('ArgumentsInvalid')],
    ['@oratorio pause now', invalid('ArgumentsInvalid')],
    ['@oratorio full review for x', invalid('ArgumentsInvalid')],
    ['@oratorio review for a\u0007b', invalid('ArgumentsInvalid')],
    ['@oratorio review\nplease', invalid('Multiline')],
    ['@oratorio review for a\u2028b', invalid('Multiline')],
    [`@oratorio review for ${'🙂'.repeat(500)}`, parsed('review', '🙂'.repeat(500))],
    [`@oratorio review for ${'🙂'.repeat(501)}`, invalid('FocusTooLong')],
    ['@oratorio full', { kind: 'unsupported' }],
    ['@oratorio reviews', { kind: 'unsupported' }],
    ['@oratorio thanks\nfor that', { kind: 'unsupported' }],
    ['@oratorio constructor', { kind: 'unsupported' }],
    ['@oratorioreview', { kind: 'notCommand' }],
    ['@oratorio-x review', { kind: 'notCommand' }],
    ['hey @oratorio review', { kind: 'notCommand' }],
    ['> @oratorio review', { kind: 'notCommand' }],
    ['`@oratorio review`', { kind: 'notCommand' }],
    ['oratorio review', { kind: 'notCommand' }],
    ['', { kind: 'notCommand' }],
  ];
  for (const [index, [body, expected]] of rows.entries())
    t.match(parseCommand(body, 'oratorio'), expected, `row ${index}`);
  t.match(parseCommand('@my.bot* review', 'my.bot*'), parsed('review'), 'a handle is no pattern');
  t.match(parseCommand('@ review', ''), { kind: 'notCommand' }, 'without a handle nobody is mentioned');
});

const blank = fc.stringMatching(/^[ \t]{1,3}$/);
const anyCase = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((ups) => [...text].map((each, at) => (ups[at] ? each.toUpperCase() : each)).join(''));

t.test('every verb is understood in any case, between any blanks, with invisible characters anywhere', async (t) => {
  for (const [words, verb] of Object.entries(verbs)) {
    fc.assert(
      fc.property(anyCase(`@oratorio ${words}`), blank, fc.nat(), (text, space, at) => {
        const spaced = text.replaceAll(' ', space);
        const place = at % (spaced.length + 1);
        const hidden = `${spaced.slice(0, place)}\u200d${spaced.slice(place)}`;
        const result = parseCommand(hidden, 'oratorio');
        return result.kind === 'parsed' && result.command.verb === verb && result.command.focus === null;
      }),
    );
  }
  t.pass();
});

t.test('a focus comes out as it went in', async (t) => {
  const focus = fc
    .string({ minLength: 1, maxLength: 400, unit: 'grapheme' })
    .map((text) =>
      text
        .normalize('NFKC')
        .replace(/\p{Cf}/gu, '')
        .trim(),
    )
    .filter((text) => text !== '' && [...text].length <= 500 && !/[\p{Cc}\u2028\u2029]/u.test(text));
  fc.assert(
    fc.property(focus, (text) => {
      const result = parseCommand(`@oratorio review for ${text}`, 'oratorio');
      return result.kind === 'parsed' && result.command.focus === text.normalize('NFKC');
    }),
  );
  t.pass();
});

t.test('any text gives one of four results, never an exception', async (t) => {
  const kinds = new Set(['notCommand', 'unsupported', 'invalid', 'parsed']);
  const anything = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string().map((text) => `@oratorio ${text}`),
    fc.string({ unit: anyCharacter }).map((text) => `@oratorio review for ${text}`),
  );
  fc.assert(
    fc.property(anything, (body) => {
      const result = parseCommand(body, 'oratorio');
      const isOneLine =
        result.kind !== 'parsed' || !/[\p{Cc}\u2028\u2029]/u.test((result.command.focus ?? '').replaceAll('\t', ''));
      return kinds.has(result.kind) && isOneLine;
    }),
    { numRuns: 1_000 },
  );
  t.pass();
});

t.test('a command is refused by the first rule that refuses, and else by the permission at the source', async (t) => {
  const facts = { isBot: false, association: 'MEMBER', isRepositoryConfigured: true, hasWorkspaceRoute: true };
  const never = () => Promise.reject(new Error('must not be asked'));
  const refused = [
    [{ isRepositoryConfigured: false, isBot: true }, 'RepositoryNotConfigured'],
    [{ isBot: true, hasWorkspaceRoute: false }, 'BotRejected'],
    [{ association: 'MANNEQUIN' }, 'ActorUnauthorized'],
    [{ hasWorkspaceRoute: false }, 'WorkspaceNotConfigured'],
  ] as const;
  for (const [change, code] of refused)
    t.match(await decideCommand({ ...facts, ...change }, never), { errorCode: `githubCommentCommand${code}` });
  for (const association of ['OWNER', 'MEMBER', 'COLLABORATOR', 'NONE', 'CONTRIBUTOR', 'FIRST_TIMER', 'x', '']) {
    const author = { ...facts, association };
    t.same(judgeCommand(author), { kind: 'askSource' });
    t.same(await decideCommand(author, async () => true), { kind: 'eligible' });
    t.match(await decideCommand(author, async () => false), { errorCode: 'githubCommentCommandActorUnauthorized' });
  }
  await t.rejects(decideCommand({ ...facts, association: 'OWNER' }, never), { message: 'must not be asked' });
});
