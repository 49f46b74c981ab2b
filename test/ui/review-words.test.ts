/** Words of the review backend's page for the codes of the backend. */
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { skipReasons } from '../../src/review/anchors/select-files.ts';
import { sourceErrorCodes } from '../../src/review/github/errors.ts';
import { ineligibleCodes } from '../../src/review/runs/eligibility.ts';
import { reasonWords } from '../../src/ui/views/review/reason-words.ts';

/** Codes that the intake of webhooks writes into its sources. */
function codesOfIntake(): string[] {
  const directory = 'src/review/webhook';
  const text = readdirSync(directory).map((name) => readFileSync(`${directory}/${name}`, 'utf8'));
  const codes = text.join('\n').matchAll(/ignored\('(\w+)'\)|'(githubCommentCommand\w+)'/g);
  return [...codes].map(([, reason, code]) => reason ?? code ?? '');
}

t.test('every code of a delivery, a refusal, a source and a skipped file has words', async (t) => {
  const codes = [...codesOfIntake(), ...ineligibleCodes, ...sourceErrorCodes, ...skipReasons];
  t.ok(codes.length > 50, `${codes.length} codes`);
  const single = /^[a-z]+$/;
  for (const code of codes) {
    const words = reasonWords(code);
    t.notMatch(words.replace('GitHub.AppId', '').replace('GitHub', ''), /[a-z][A-Z]/, `${code}: ${words}`);
    if (!single.test(code))
      t.not(
        words,
        code.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
        code,
      );
  }
});

t.test('an unknown code is split into its words', (t) => {
  t.equal(reasonWords('aNewReason'), 'a new reason');
  t.equal(reasonWords('constructor'), 'constructor');
  t.end();
});
