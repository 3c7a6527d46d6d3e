'use strict';
const { request } = require('./request');
const of = (resource, ...operation) => ({ show: { resource: [resource], operation } });
exports.Tickets = class Tickets {
    description = {
        displayName: 'Tickets', name: 'tickets', version: 1, inputs: ['main'], outputs: ['main'],
        credentials: [{ name: 'ticketsApi', required: true }],
        properties: [
            { name: 'resource', type: 'options', default: 'ticket', options: [{ name: 'Ticket', value: 'ticket' }, { name: 'Comment', value: 'comment' }] },
            { name: 'operation', type: 'options', default: 'create', displayOptions: { show: { resource: ['ticket'] } }, options: [
                { name: 'Create', value: 'create' }, { name: 'Get', value: 'get' }, { name: 'Update', value: 'update' }, { name: 'Delete', value: 'delete' }] },
            { name: 'operation', type: 'options', default: 'add', displayOptions: { show: { resource: ['comment'] } }, options: [{ name: 'Add', value: 'add' }] },
            { name: 'ticketId', type: 'string', required: true, default: '', displayOptions: of('ticket', 'get', 'update', 'delete') },
            { name: 'subject', type: 'string', required: true, default: '', displayOptions: of('ticket', 'create') },
            { name: 'urgent', type: 'boolean', default: false, displayOptions: of('ticket', 'create') },
            { name: 'state', type: 'options', default: 'open', displayOptions: of('ticket', 'update'), options: [{ name: 'Open', value: 'open' }, { name: 'Closed', value: 'closed' }] },
            { name: 'on', type: 'string', required: true, default: '', displayOptions: of('comment', 'add') },
            { name: 'text', type: 'string', default: '', displayOptions: of('comment', 'add') },
        ],
    };
    async execute() {
        const items = [];
        for (let i = 0; i < this.getInputData().length; i++) {
            const resource = this.getNodeParameter('resource', i), operation = this.getNodeParameter('operation', i);
            const get = (name) => this.getNodeParameter(name, i);
            if (resource === 'comment') {
                items.push(await request.call(this, 'POST', `/tickets/${encodeURIComponent(get('on'))}/comments`, { text: get('text') }));
            } else if (operation === 'create') {
                const body = { subject: get('subject'), priority: get('urgent') ? 1 : 3 };
                items.push(await request.call(this, 'POST', '/tickets', { ticket: body }));
            } else if (operation === 'get') {
                items.push((await request.call(this, 'GET', `/tickets/${get('ticketId')}`, undefined, { include: 'users' })).ticket);
            } else if (operation === 'update') {
                items.push(await request.call(this, 'PUT', `/tickets/${get('ticketId')}`, { state: get('state') }));
            } else {
                await request.call(this, 'DELETE', `/tickets/${get('ticketId')}`);
                items.push({ deleted: true });
            }
        }
        return [this.helpers.returnJsonArray(items)];
    }
};
