/** Capabilities that every provider is tested for. The titles of the tests come from here, and the table in `docs/providers.md`. */
export interface Capability {
  /** Head of its column in the table. */
  readonly column: string;
  /** Title of its test, in the test of each provider. */
  readonly test: string;
}

export const capabilities = {
  toolLoop: {
    column: 'Tools, state goes back',
    test: 'a tool loop of five rounds ends with the right answer; state goes back unchanged',
  },
  parallel: { column: 'Parallel calls', test: 'parallel calls are answered together' },
  foreign: {
    column: 'Takes over a thread',
    test: 'a conversation of another model is understood without its state',
  },
  pictures: { column: 'Pictures', test: 'a picture arrives whole' },
  ends: { column: 'Refusal, length, filter', test: 'refusal, length and filter differ from an answer' },
  json: { column: 'JSON of a schema', test: 'JSON of a schema is asked for as the service wants it' },
  usage: { column: 'Cached, reasoning, cost', test: 'tokens are counted with cache and reasoning' },
  effort: { column: 'Effort, output limit', test: 'every effort and a small output limit are accepted' },
  statuses: {
    column: 'Refusals',
    test: 'a status that passes may be retried, others not; the key is never shown',
  },
  cuts: {
    column: 'Cut streams',
    test: 'an answer that is cut or ends early is a failure that may be retried, wherever it breaks',
  },
  abort: { column: 'Abort', test: 'an abort ends the request' },
  list: { column: 'Lists models', test: 'the models are listed' },
  requestId: { column: 'Request id', test: 'the id of a request comes first, also of a refused one' },
  wrongKey: { column: 'Wrong key', test: 'a wrong key is reported as one' },
} as const satisfies Readonly<Record<string, Capability>>;
