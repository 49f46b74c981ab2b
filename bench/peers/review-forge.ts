/**
 * The forge of the tests with a given number of repositories and open pull requests, in a process of its own. Prints where
 * it is and the key of its App as one line of JSON; ends with its standard input.
 *
 *     review-forge.ts REPOSITORIES PULLS
 */
import { Forge } from '../../test/review/forge/index.ts';

const [repositories = 1_000, pulls = 100] = process.argv.slice(2, 4).map(Number);
const forge = await new Forge({ validates: false }).start();
const since = Date.now() - 86_400_000;
for (let at = 0; at < repositories; at += 1) {
  const repository = forge.addRepository(`owner${at % 10}`, `repo${at}`);
  for (let number = 1; number <= pulls; number += 1) {
    forge.addPull(repository, { number, updatedAt: since + number * 1_000 });
  }
}
console.log(JSON.stringify({ url: forge.apiUrl, appId: forge.app.id, privateKey: forge.app.privateKey }));
process.stdin.resume();
process.stdin.on('end', () => void forge.stop());
