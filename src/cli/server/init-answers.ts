import { existsSync } from 'node:fs';
import {
  checkAcmeEmail,
  checkHost,
  checkSecretText,
  defaults,
  type InitAnswers,
  isProvider,
  type Leftovers,
  type ProviderName,
  providers,
  type Repository,
  repositoryNamed,
  secretRefusals,
} from '../../deploy/index.ts';
import { askChoice, askSecret, askText, askYesNo, canAsk } from '../ask.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { portOf } from '../port.ts';
import { given, isMissing, pairs, secretText, stackDirectory } from './given.ts';
import { problemOf } from './problem-of.ts';
import { webhookAnswers } from './webhook-answers.ts';

const command = 'server init';
const keyName = "The App's private key";
const installationId = /^[1-9]\d{0,14}$/;
/** Path of `secrets/` in the containers. */
const secretsInside = '/secrets/';

/** Collects the input of `server init` from options, from an earlier attempt, and for the rest from the user. */
export async function initAnswers(context: CommandContext, left: Leftovers | null): Promise<InitAnswers> {
  const interview = new Interview(context, left);
  const repositories = await interview.repositories();
  const model = await interview.model();
  const github = await interview.github(repositories);
  const autoReview = await interview.yesNo('auto-review', 'Review new pull requests by themselves?', true);
  const writes = await interview.yesNo('github-writes', 'Write reviews to the pull requests?', true);
  const webhook = await interview.webhook();
  const port = given(context, 'port');
  return {
    directory: stackDirectory(context, defaults.directory),
    repositories,
    autoReview,
    writes,
    model,
    github,
    webhook,
    images: { stack: given(context, 'image') ?? null, gateway: given(context, 'gateway-image') ?? null },
    build: buildOf(context),
    port: port === undefined ? null : portOf(port, command),
    starts: context.options['start'] !== false,
    isOffline: context.options['offline'] === true,
  };
}

function buildOf(context: CommandContext): InitAnswers['build'] {
  const checkout = given(context, 'build');
  const base = given(context, 'base-image') ?? null;
  if (checkout === undefined && base !== null) throw usageError('--base-image is only for --build.', command);
  return checkout === undefined ? null : { context: context.absolute(checkout), base };
}

class Interview {
  readonly #context: CommandContext;
  readonly #left: Leftovers | null;
  readonly #asks: boolean;

  constructor(context: CommandContext, left: Leftovers | null) {
    this.#context = context;
    this.#left = left;
    this.#asks = canAsk(context);
  }

  async repositories(): Promise<InitAnswers['repositories']> {
    const flags = this.#context.lists['repo'] ?? [];
    const names = flags.length > 0 ? flags : (this.#left?.repositories ?? (await this.#askRepositories()));
    const urls = new Map(
      [...pairs(this.#context, 'clone-url', 'owner/name=url')].map(([name, url]) => [repositoryNamed(name).key, url]),
    );
    const repositories = new Map<string, Repository>(
      names.map((name) => repositoryNamed(name)).map((repository) => [repository.key, repository]),
    );
    for (const key of urls.keys())
      if (!repositories.has(key)) throw usageError(`--clone-url names ${key}, which is not a --repo.`, command);
    return [...repositories.values()].map((repository) => ({
      repository,
      cloneUrl: urls.get(repository.key) ?? null,
    }));
  }

  async #askRepositories(): Promise<readonly string[]> {
    if (!this.#asks) throw isMissing(this.#context, command, 'repo', 'A repository');
    const text = await askText({
      message: 'Which repositories? Several are separated by spaces.',
      placeholder: 'owner/name',
      check: (answer) =>
        answer === '' ? 'Name at least one, as owner/name.' : problemOf(() => wordsOf(answer).map(repositoryNamed)),
    });
    return wordsOf(text);
  }

  async model(): Promise<InitAnswers['model']> {
    const left = this.#left?.model;
    const endpoint = given(this.#context, 'endpoint');
    const named = given(this.#context, 'provider');
    if (left && named === undefined && endpoint === undefined) {
      return {
        ...left,
        name: given(this.#context, 'model') ?? left.name,
        apiKey: (await this.#givenKey()) ?? left.apiKey,
      };
    }
    const name = await this.#provider(named, endpoint);
    const provider = providers[name];
    return {
      endPoint: endpoint ?? provider.endPoint ?? (await this.#endPoint()),
      name: given(this.#context, 'model') ?? (name === 'demo' ? 'demo' : await this.#modelName(provider.model)),
      apiKey: name === 'demo' ? '' : ((await this.#givenKey()) ?? (await this.#key(provider))),
    };
  }

  async #provider(named: string | undefined, endpoint: string | undefined): Promise<ProviderName> {
    if (named !== undefined && isProvider(named)) return named;
    if (endpoint !== undefined) return 'custom';
    if (!this.#asks) throw isMissing(this.#context, command, 'provider', 'The model provider');
    const names = Object.keys(providers).filter(isProvider);
    return askChoice(
      'Which model provider?',
      names.map((value) => ({ value, label: providers[value].title })),
    );
  }

  async #endPoint(): Promise<string> {
    if (!this.#asks) throw isMissing(this.#context, command, 'endpoint', "The provider's address");
    return askText({
      message: 'Base URL of its API?',
      placeholder: 'https://models.example.com/v1',
      check: (answer) =>
        URL.canParse(answer) && /^https?:$/.test(new URL(answer).protocol)
          ? undefined
          : 'An http or https URL, please.',
    });
  }

  async #modelName(byDefault: string | null): Promise<string> {
    if (this.#asks) {
      return askText({
        message: 'Which model?',
        ...(byDefault !== null && { initial: byDefault }),
        check: (answer) => (answer === '' ? 'Name the model.' : undefined),
      });
    }
    if (byDefault === null) throw isMissing(this.#context, command, 'model', 'The model');
    return byDefault;
  }

  /** Key of the provider from a file or the environment; undefined: none is given. */
  async #givenKey(): Promise<string | undefined> {
    const file = given(this.#context, 'api-key-file');
    const text =
      file === undefined
        ? this.#context.env['ORATORIO_MODEL_API_KEY']
        : await secretText(this.#context, file, 'The key of the provider');
    const key = text?.trim();
    if (key === undefined || key === '') return undefined;
    if (keyProblem(key) !== undefined) throw new CliError('usage', `The key of the provider ${keyProblem(key)}.`);
    return key;
  }

  async #key({ needsKey, title }: { readonly needsKey: boolean; readonly title: string }): Promise<string> {
    if (this.#asks) {
      return askSecret(
        needsKey ? `API key of ${title}?` : 'API key? Leave it empty if the provider needs none.',
        (answer) => (answer === '' && !needsKey ? undefined : keyProblem(answer)),
      );
    }
    if (!needsKey) return '';
    throw isMissing(this.#context, command, 'api-key-file', 'The key of the provider (or ORATORIO_MODEL_API_KEY)');
  }

  async github(repositories: InitAnswers['repositories']): Promise<InitAnswers['github']> {
    const left = this.#left?.github;
    const installations = [...pairs(this.#context, 'github-installation', 'owner=id')].map(([owner, id]) => {
      if (!installationId.test(id))
        throw usageError(`--github-installation must be owner=id, not ${owner}=${id}.`, command);
      return { owner, installationId: Number(id) };
    });
    const appId = given(this.#context, 'github-app-id') ?? left?.appId ?? (await this.#appId());
    const key = await this.#privateKey(left);
    return {
      appId,
      ...key,
      installations:
        installations.length > 0 ? installations : (left?.installations ?? (await this.#installations(repositories))),
      endpoint: given(this.#context, 'github-url') ?? left?.endpoint ?? null,
    };
  }

  async #appId(): Promise<string> {
    if (!this.#asks) throw isMissing(this.#context, command, 'github-app-id', 'The id of the GitHub App');
    return askText({
      message: 'Id of your GitHub App?',
      placeholder: '12345',
      check: (answer) => (/^[\w.-]{1,64}$/.test(answer) ? undefined : 'It is a number, on the page of the App.'),
    });
  }

  /** Optional: without a number the installation of an owner is found through the App. */
  async #installations(repositories: InitAnswers['repositories']): Promise<InitAnswers['github']['installations']> {
    if (!this.#asks) return [];
    const owners = new Set(repositories.map(({ repository }) => repository.fullName.split('/')[0] ?? ''));
    const found: { owner: string; installationId: number }[] = [];
    for (const owner of owners) {
      const id = await askText({
        message: `Id of the App's installation for ${owner}? Leave it empty to have it found.`,
        check: (answer) =>
          answer === '' || installationId.test(answer)
            ? undefined
            : 'It is a number, at the end of the address of its page.',
      });
      if (id !== '') found.push({ owner, installationId: Number(id) });
    }
    return found;
  }

  async #privateKey(left: Leftovers['github']): Promise<Pick<InitAnswers['github'], 'privateKey' | 'privateKeyPath'>> {
    const path = given(this.#context, 'github-app-private-key-path');
    const file = given(this.#context, 'github-app-private-key-file');
    if (path !== undefined && file !== undefined)
      throw usageError('Give either --github-app-private-key-file or --github-app-private-key-path.', command);
    if (path !== undefined) return { privateKey: null, privateKeyPath: path };
    const privateKeyPath = defaults.privateKeyPath;
    if (file !== undefined) return { privateKey: await secretText(this.#context, file, keyName), privateKeyPath };
    if (left?.hasPrivateKey) return { privateKey: null, privateKeyPath: left.privateKeyPath };
    if (!this.#asks) throw isMissing(this.#context, command, 'github-app-private-key-file', "The App's private key");
    const asked = await askText({
      message: "File with the App's private key? A path below /secrets/ is where the containers will see it.",
      placeholder: './app.private-key.pem',
      check: (answer) =>
        isInside(answer) || (answer !== '' && existsSync(this.#context.absolute(answer)))
          ? undefined
          : 'There is no such file.',
    });
    if (isInside(asked)) return { privateKey: null, privateKeyPath: asked };
    return { privateKey: await secretText(this.#context, asked, keyName), privateKeyPath };
  }

  /** @param name of the option, without its `no-` */
  async yesNo(name: 'auto-review' | 'github-writes', message: string, byDefault: boolean): Promise<boolean> {
    if (this.#context.options[name] === false) return false;
    const left = name === 'auto-review' ? this.#left?.autoReview : this.#left?.writes;
    if (left !== undefined) return left;
    return this.#asks ? askYesNo(message, byDefault) : byDefault;
  }

  async webhook(): Promise<InitAnswers['webhook']> {
    const flags = { host: 'webhook-public-host', email: 'webhook-acme-email', secretFile: 'webhook-secret-file' };
    const host = given(this.#context, flags.host);
    if (host !== undefined) return webhookAnswers(this.#context, { ...flags, host });
    for (const flag of [flags.email, flags.secretFile])
      if (given(this.#context, flag) !== undefined) throw usageError(`--${flag} is only for --${flags.host}.`, command);
    if (
      !this.#asks ||
      !(await askYesNo('Let GitHub deliver webhooks to this machine? Ports 80 and 443 must be open.', false))
    )
      return null;
    const asked = await askText({
      message: 'Public DNS name or IP address of this machine?',
      placeholder: 'reviews.your-company.com',
      check: (answer) => problemOf(() => checkHost(answer, 'production')),
    });
    const email = await askText({
      message: 'E-mail for the certificate authority? May be empty.',
      check: (answer) => (answer === '' ? undefined : problemOf(() => checkAcmeEmail(answer))),
    });
    return { publicHost: asked, acmeEmail: email === '' ? null : email, certificates: 'production', secret: null };
  }
}

const isInside = (path: string): boolean => path.startsWith(secretsInside) && path.length > secretsInside.length;

const wordsOf = (text: string): readonly string[] => text.split(/[\s,]+/).filter(Boolean);

/** Problem of a key, to follow "The key …". The limits of our own secrets do not apply to a provider's key. */
function keyProblem(key: string): string | undefined {
  if (key === '') return 'is needed';
  const checked = checkSecretText(key);
  return 'refused' in checked && checked.refused !== 'tooShort' && checked.refused !== 'tooLong'
    ? secretRefusals[checked.refused]
    : undefined;
}
