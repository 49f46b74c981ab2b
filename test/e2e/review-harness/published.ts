/** Reviews and comments that the App has published on the forge. */
import type { ForgeComment, ForgeReview, ForgeReviewComment } from '../../review/forge/index.ts';
import type { Scene } from './scene.ts';

export const bot = 'oratorio-test[bot]';

/** Reviews of a pull request, without the reviews that GitHub wraps around single comments. */
export const reviewsOf = ({ repo }: Scene, number: number): readonly ForgeReview[] =>
  repo.reviews.filter(
    (each) => each.number === number && each.author === bot && each.state !== 'PENDING' && each.body !== '',
  );

/** Comments on lines and files of a pull request. */
export const commentsOf = ({ repo }: Scene, number: number): readonly ForgeReviewComment[] =>
  repo.reviewComments.filter((each) => each.number === number && each.author === bot);

/** Comments in the conversation of a pull request. */
export const conversationOf = ({ repo }: Scene, number: number): readonly ForgeComment[] =>
  repo.comments.filter((each) => each.number === number && each.author === bot);
