import type {
	IDataObject,
	IExecuteFunctions,
	IHttpRequestOptions,
	INodeExecutionData,
	INodeType,
	INodeTypeDescription,
} from 'n8n-workflow';

const BASE_URL = 'https://api.linkshelf.example/v1';

export class Linkshelf implements INodeType {
	description: INodeTypeDescription = {
		displayName: 'Linkshelf',
		name: 'linkshelf',
		group: ['transform'],
		version: 1,
		description: 'Keep, find and tidy up links on a shelf',
		defaults: { name: 'Linkshelf' },
		inputs: ['main'],
		outputs: ['main'],
		credentials: [{ name: 'linkshelfApi', required: true }],
		properties: [
			{
				displayName: 'Resource',
				name: 'resource',
				type: 'options',
				options: [
					{ name: 'Link', value: 'link' },
					{ name: 'Shelf', value: 'shelf' },
				],
				default: 'link',
			},
			{
				displayName: 'Operation',
				name: 'operation',
				type: 'options',
				displayOptions: { show: { resource: ['link'] } },
				options: [
					{ name: 'Add', value: 'add', description: 'Put a link on a shelf' },
					{ name: 'Get', value: 'get', description: 'Read one link' },
					{ name: 'Get Many', value: 'getAll', description: 'List links, newest first' },
					{ name: 'Remove', value: 'remove', description: 'Take a link off its shelf' },
				],
				default: 'add',
			},
			{
				displayName: 'Operation',
				name: 'operation',
				type: 'options',
				displayOptions: { show: { resource: ['shelf'] } },
				options: [{ name: 'Create', value: 'create', description: 'Put up a shelf' }],
				default: 'create',
			},
			{
				displayName: 'Link ID',
				name: 'linkId',
				type: 'string',
				required: true,
				default: '',
				description: 'Number of the link, as Add returned it',
				displayOptions: { show: { resource: ['link'], operation: ['get', 'remove'] } },
			},
			{
				displayName: 'URL',
				name: 'url',
				type: 'string',
				required: true,
				default: '',
				description: 'Address to keep',
				displayOptions: { show: { resource: ['link'], operation: ['add'] } },
			},
			{
				displayName: 'Tags',
				name: 'tags',
				type: 'string',
				default: '',
				description: 'Words to find it by, parted by commas',
				displayOptions: { show: { resource: ['link'], operation: ['add', 'getAll'] } },
			},
			{
				displayName: 'Visibility',
				name: 'visibility',
				type: 'options',
				options: [
					{ name: 'Private', value: 'private' },
					{ name: 'Shared', value: 'shared' },
				],
				default: 'private',
				displayOptions: { show: { resource: ['link'], operation: ['add'] } },
			},
			{
				displayName: 'Limit',
				name: 'limit',
				type: 'number',
				default: 50,
				description: 'Links to return at most',
				displayOptions: { show: { resource: ['link'], operation: ['getAll'] } },
			},
			{
				displayName: 'Title',
				name: 'title',
				type: 'string',
				required: true,
				default: '',
				description: 'What the shelf is called',
				displayOptions: { show: { resource: ['shelf'], operation: ['create'] } },
			},
		],
	};

	async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
		const items = this.getInputData();
		const answers: IDataObject[] = [];
		for (let i = 0; i < items.length; i++) {
			const resource = this.getNodeParameter('resource', i) as string;
			const operation = this.getNodeParameter('operation', i) as string;
			const options: IHttpRequestOptions = { url: BASE_URL, method: 'GET', json: true };
			if (resource === 'link') {
				if (operation === 'add') {
					options.method = 'POST';
					options.url = `${BASE_URL}/links`;
					options.body = {
						url: this.getNodeParameter('url', i),
						tags: (this.getNodeParameter('tags', i) as string)
							.split(',')
							.map((tag) => tag.trim())
							.filter((tag) => tag !== ''),
						visibility: this.getNodeParameter('visibility', i),
					};
				} else if (operation === 'get') {
					options.method = 'GET';
					options.url = `${BASE_URL}/links/${this.getNodeParameter('linkId', i)}`;
				} else if (operation === 'getAll') {
					options.method = 'GET';
					options.url = `${BASE_URL}/links`;
					options.qs = {
						limit: this.getNodeParameter('limit', i),
						tags: this.getNodeParameter('tags', i),
					};
				} else if (operation === 'remove') {
					options.method = 'DELETE';
					options.url = `${BASE_URL}/links/${this.getNodeParameter('linkId', i)}`;
				}
			} else if (resource === 'shelf') {
				if (operation === 'create') {
					options.method = 'POST';
					options.url = `${BASE_URL}/shelves`;
					options.body = { title: this.getNodeParameter('title', i) };
				}
			}
			const answer = await this.helpers.httpRequestWithAuthentication.call(this, 'linkshelfApi', options);
			answers.push(answer as IDataObject);
		}
		return [this.helpers.returnJsonArray(answers)];
	}
}
