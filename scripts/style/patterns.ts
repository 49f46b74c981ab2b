/** Words and phrases that the style of this project does not use. */

/**
 * Where a pattern applies: beginnings of comments; sentences of comments, documents, titles of tests and texts; titles alone; code
 * without comments and texts; or everything.
 */
export type Scope = 'comment' | 'prose' | 'title' | 'code' | 'all';

export interface StylePattern {
  readonly id: string;
  readonly scope: Scope;
  readonly pattern: RegExp;
  readonly reason: string;
  /** What to write. */
  readonly instead: string;
  /** A text that must be found. */
  readonly example: string;
}

export const stylePatterns: readonly StylePattern[] = [
  {
    id: 'indefinite-pronoun',
    scope: 'prose',
    pattern: /\b(?:whoever|whomever|somebody|someone|nobody|anybody)\b/i,
    reason: 'an indefinite pronoun hides the subject',
    instead: 'the client, the user, the caller, no client',
    example: 'Called for whoever waits.',
  },
  {
    id: 'who-as-noun',
    scope: 'prose',
    pattern: /\b(?:for|to|by|from|of|with|than|what|when|whether|unless) whom?\b(?![^.;]*\?)/i,
    reason: '“who” stands in for a noun',
    instead: 'the client that, the process that',
    example: 'Tokens of who asks.',
  },
  {
    id: 'who-as-subject',
    scope: 'comment',
    pattern: /^(?:Who|Whom|Whose)\b/,
    reason: 'a comment begins with its contract, not with a question',
    instead: 'name the subject: “Client that asked”',
    example: '/** Who asked. */',
  },
  {
    id: 'what-as-subject',
    scope: 'comment',
    pattern: /^What\b(?!.*\?)/,
    reason: 'a comment begins with a noun or a verb',
    instead: 'name the thing: “Settings of a repository”',
    example: '/** What is configured of a repository. */',
  },
  {
    id: 'how-as-subject',
    scope: 'comment',
    pattern: /^How (?!many|much|long|often|far)\b(?!.*\?)/,
    reason: 'a comment begins with a noun or a verb',
    instead: 'a verb: “Spawns or adopts a process”',
    example: '/** How a process is got hold of. */',
  },
  {
    id: 'told',
    scope: 'prose',
    pattern: /\b(?:told|tells?|telling)\b/i,
    reason: 'names no action',
    instead: 'notify, emit, report, log, return, distinguish',
    example: 'The client is told.',
  },
  {
    id: 'wish',
    scope: 'prose',
    pattern: /\bwish(?:es|ed)?\b/i,
    reason: 'a program does not wish',
    instead: 'request, trigger',
    example: 'A wish for a sidecar.',
  },
  {
    id: 'is-none',
    scope: 'prose',
    pattern: /\b(?:is|are|was|were) none\b/i,
    reason: 'says what something is not',
    instead: 'is missing, is invalid, is not a …',
    example: 'An answer that is none.',
  },
  {
    id: 'has-not',
    scope: 'prose',
    pattern: /\b(?:has|have|had) not (?:what|the|a|an|its|one)\b/i,
    reason: 'says what is absent in an unusual form',
    instead: 'lacks, is missing, does not have',
    example: 'A payload that has not what it must have.',
  },
  {
    id: 'stranger',
    scope: 'all',
    pattern: /stranger(?!')/i,
    reason: 'a metaphor',
    instead: 'unmanaged, unauthenticated, untrusted, another process',
    example: 'inspectStranger',
  },
  {
    id: 'hopeless',
    scope: 'all',
    pattern: /hopeless/i,
    reason: 'a metaphor',
    instead: 'permanent',
    example: 'const hopeless = new Set();',
  },
  {
    id: 'got-hold-of',
    scope: 'prose',
    pattern: /\b(?:got|gets?|getting) hold of\b/i,
    reason: 'a metaphor',
    instead: 'acquire, spawn, read',
    example: 'How it is got hold of.',
  },
  {
    id: 'goes-on',
    scope: 'prose',
    // “A turn goes on” is the term for a resumed turn.
    pattern: /\b(?<!\bturns? )(?:goes|go|going|went) on\b(?! (?:line|disk|top))/i,
    reason: 'a phrase with many meanings',
    instead: 'continue, resume, remain',
    example: 'The run goes on.',
  },
  {
    id: 'looked-at',
    scope: 'prose',
    pattern: /\blook(?:s|ed|ing)? (?:at|after|upon)\b/i,
    reason: 'names no action',
    instead: 'read, poll, sync, check, open, maintain',
    example: 'When it is first looked at.',
  },
  {
    id: 'is-kept',
    scope: 'prose',
    pattern: /\b(?:is|are|be|was|were) kept\b(?! (?:open|alive|apart|up to date|in step))/i,
    reason: 'names no action',
    instead: 'is saved, is stored, is retained',
    example: 'The answer is kept.',
  },
  {
    id: 'living',
    scope: 'prose',
    pattern: /\bliving\b/i,
    reason: 'a metaphor for a process',
    instead: 'running, active',
    example: '7 living',
  },
  {
    id: 'dice',
    scope: 'code',
    pattern: /\b(?:dice|roll)\b/,
    reason: 'a metaphor for a random number',
    instead: 'random, nextRandom',
    example: 'const roll = dice();',
  },
  {
    id: 'let-go',
    scope: 'code',
    pattern: /\bletGo\b/,
    reason: 'names no change',
    instead: 'release, clearProcess, removeHandlers',
    example: 'letGo();',
  },
  {
    id: 'retriable',
    scope: 'all',
    pattern: /\b(?:is)?retriable\b/i,
    reason: 'two spellings of one concept',
    instead: 'isRetryable, retryable',
    example: 'readonly retriable: boolean;',
  },
  {
    id: 'metaphor-name',
    scope: 'all',
    pattern:
      /\b(?:takeOperatorsStart|blameDeadline|stopAsAsked|isLastStraw|restsForGood|isStuck|inspectStranger|hasWayBack|SidecarWish|UnkeptEnds|McpRoom)\b/,
    reason: 'a pun or a metaphor in a name',
    instead: 'the names of the style guide: recordStartTimeout, reachesFailureThreshold, isResumable, …',
    example: 'guard: isLastStraw',
  },
  {
    id: 'outside-document',
    scope: 'all',
    pattern:
      /\bDESIGN(?:-\d+|\.md| \u00a7)|\.\.\/shared\b|service-specification\.md|\b(?:study|reference) (?:\u00a7|[A-Z]\d)/,
    reason: 'the document is not in the tree',
    instead: 'docs/specification.md or docs/design.md, with a section of it',
    example: 'as DESIGN-2 says',
  },
  {
    id: 'what-clause',
    scope: 'prose',
    pattern: /(?<!“|\$\{)\bwhat\b(?! to\b)(?![^.!?|]*\?)/i,
    reason: 'a clause hides a noun',
    instead: 'the noun: the request, the response, the settings, the rest',
    example: 'Returns what it said last.',
  },
  {
    id: 'whatever',
    scope: 'prose',
    pattern: /\bwhatever\b/i,
    reason: 'a clause hides a noun',
    instead: 'any error, each kind of …',
    example: 'Whatever it throws is logged.',
  },
  {
    id: 'is-no',
    scope: 'prose',
    pattern: /(?<!\b(?:there|it) )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|later\b|earlier\b|other\b)/i,
    reason: 'says what something is not in an unusual form',
    instead: 'is not a …, is invalid, is missing',
    example: 'A directory that is no workspace.',
  },
  {
    id: 'maker',
    scope: 'prose',
    pattern: /\b(?:another|other) makers?\b/i,
    reason: 'the glossary has a word',
    instead: 'external agent',
    example: 'An agent of another maker.',
  },
  {
    id: 'comment-begin',
    scope: 'comment',
    pattern: /^(?:Of|The same|As|Likewise|Its?|They|Their|Those|One (?:that|of))\b/,
    reason: 'an editor shows this comment alone',
    instead: 'a noun or a verb: “Standard error of the sidecar”',
    example: '/** Of the prompts that follow. */',
  },
  {
    id: 'anew',
    scope: 'prose',
    pattern: /\b(?:anew|likewise|nevertheless|in spite of)\b/i,
    reason: 'a rare word',
    instead: 'again, also, still, although',
    example: 'The file is read anew.',
  },
  {
    id: 'as-it-is',
    scope: 'prose',
    pattern: /\bas (?:it|they) (?:is|are|was|were)\b/i,
    reason: 'names no state',
    instead: 'unchanged, current, or nothing',
    example: 'It passes as it is.',
  },
  {
    id: 'private-code',
    scope: 'title',
    pattern: /\([A-Z]\d{1,2}(?:, [A-Z]\d{1,2})*\)|(?<=regression: (?:[A-Z]\d{1,2} )*)\b(?![CHLM]\d)[A-Z]\d{1,2}\b/,
    reason: 'only its author has the list',
    instead: 'the behaviour; ids of docs/security.md stay',
    example: "t.test('regression: B5 a question is withdrawn', fn);",
  },
  {
    id: 'tell-name',
    scope: 'code',
    pattern: /\btell(?:[A-Z]\w*|(?=\())|\b(?:isTellable|[tT]old)\b/,
    reason: 'names no action',
    instead: 'notify, emit, report, publish',
    example: 'tellHub();',
  },
];
